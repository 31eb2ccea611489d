# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completes dtool's commands in bash: `source <(dtool completion bash)` in ~/.bashrc. dtool itself prints the candidates.
_dtool() {
  local rest=$COMP_LINE piece line typed kept i files=no words=()
  # Bash also splits words at = : @. Pieces without a blank between them are one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then words+=("$piece"); else words[${#words[@]} - 1]+=$piece; fi
    rest=${rest#"${rest%%[![:space:]]*}"}
    rest=${rest#"$piece"}
  done
  typed=${words[${#words[@]} - 1]}
  kept=${typed%"${typed##*["$COMP_WORDBREAKS"]}"}  # is there already, and must not be repeated
  kept=${kept%@}  # but readline takes this one for the word's first letter
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=yes; else line=${line%%$'\t'*} && COMPREPLY+=("${line#"$kept"}"); fi
  done < <("${words[0]/#\~\//$HOME/}" __complete "${words[@]:1}" 2> /dev/null)
  if [[ $files == yes ]]; then
    # A name with a newline comes in pieces, which are no files.
    while IFS= read -r line; do
      if [[ $line == \~* || -e $line || -L $line ]]; then COMPREPLY+=("$line"); fi
    done < <(compgen -f -- "${typed#"$kept"}")
    compopt -o filenames 2> /dev/null && return 0  # then readline quotes them
  fi
  for i in "${!COMPREPLY[@]}"; do
    if [[ ${COMPREPLY[i]} == *[^A-Za-z0-9_.,:=@%+/-]* ]]; then printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; fi
  done
}
complete -F _dtool dtool
