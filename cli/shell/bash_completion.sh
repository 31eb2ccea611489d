# shellcheck shell=bash
# Completion of dtool in bash: `source <(dtool completion bash)` in ~/.bashrc. dtool itself says what may come next.
_dtool() {
  local rest=$COMP_LINE piece line typed kept i files=no words=()
  # Bash cuts words at = : @ too. Pieces that nothing parts are one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then words+=("$piece"); else words[${#words[@]} - 1]+=$piece; fi
    rest=${rest#"${rest%%[![:space:]]*}"}
    rest=${rest#"$piece"}
  done
  typed=${words[${#words[@]} - 1]}
  kept=${typed%"${typed##*["$COMP_WORDBREAKS"]}"} # stands already, and is not typed again
  kept=${kept%@} # but this one readline takes for the word's first letter
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=yes; else line=${line%%$'\t'*} && COMPREPLY+=("${line#"$kept"}"); fi
  done < <("${words[0]/#\~\//$HOME/}" __complete "${words[@]:1}" 2> /dev/null)
  [[ $files == yes ]] || return 0
  compopt -o filenames 2> /dev/null
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${typed#"$kept"}")
}
complete -F _dtool dtool
