#compdef dtool
# SPDX-License-Identifier: MIT
# Completion of dtool in zsh: `source <(dtool completion zsh)` in ~/.zshrc after compinit, or this file as _dtool in a folder of
# fpath. dtool itself says what may come next.
_dtool() {
  local line files=no
  local -a candidates
  for line in "${(@f)$("${(Q)words[1]/#\~\//$HOME/}" __complete "${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    if [[ $line == :files ]]; then
      files=yes
    elif [[ -n $line ]]; then
      # _describe parts a word from what is said of it at the first bare colon, and compadd quotes the word.
      candidates+=("${${${line%%$'\t'*}//\\/\\\\}//:/\\:}${${(M)line%%$'\t'*}:+:${line#*$'\t'}}")
    fi
  done
  (( $#candidates )) && _describe -V dtool candidates
  [[ $files == yes ]] || return 0
  compset -P '--*='
  _files
}
if [[ ${funcstack[1]-} == _dtool ]]; then _dtool "$@"; else compdef _dtool dtool; fi
