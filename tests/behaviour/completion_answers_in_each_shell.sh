#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bash, zsh and fish, with the script of dtool completion, complete commands, flags, runs, groups and files. What others chose as a name is a word
# to them and no command.
source "$(dirname "$0")/harness.sh"

mkdir -p "$HOME/.dtool" bin
ln -s "$DTOOL" bin/dtool
export PATH=$PWD/bin:$PATH
printf '[groups]\nlab = "h[1-3]"\nlarge = "gpu[01-64]"\n' >"$HOME/.dtool/config.toml"
echo true >train.sh
mkdir 'own folder'
expect_exit 0 dtool run --follow --extra_tag here -- bash train.sh
run=$(basename "$HOME"/.dtool/killfiles/*.killfile .killfile)

expect_exit 0 dtool __complete kill ''
expect_output "^$run	.*, 1 machine\$"
expect_exit 2 dtool completion tcsh
expect_exit 2 dtool completion
expect_exit 0 dtool completion bash --json
json "d['shell'], d['script']" >/dev/null

# completed LINE: what bash has in COMPREPLY at the end of that line, which readline would cut into these words.
cat >complete.bash <<'END'
set -u
source <(dtool completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
mapfile -t COMP_WORDS < <(python3 - "$1" <<'PYTHON'
import re, sys
line = sys.argv[1]
words = re.findall(r"[=:@]+|[^\s=:@]+", line)
print("\n".join(words + ([""] if line[-1].isspace() else [])))
PYTHON
)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_dtool
printf '%s\n' "${COMPREPLY[@]}" | sort | xargs -d '\n'
END
completed() { bash --norc complete.bash "$1"; }
expect_equal "kill" "$(completed 'dtool ki')"
expect_equal "--runs_on" "$(completed 'dtool run --runs')"
expect_equal "$run" "$(completed 'dtool kill ')"
expect_equal "@lab @large" "$(completed 'dtool run --runs_on @l')"
expect_equal "@large" "$(completed 'dtool run --runs_on=@lar')"
expect_equal "always auto never" "$(completed 'dtool list --color=')"
expect_equal 'objectnav objectnav_large objectnav_pixels objectnav_rooms own\ folder' "$(completed 'dtool run o')"
mkdir $'two\nlines'
expect_equal "" "$(completed 'dtool run --code_path two')"
expect_equal "" "$(completed 'dtool run --code_path lin')"
rmdir $'two\nlines'
expect_equal "bash fish zsh" "$(completed 'dtool completion ')"
expect_equal "" "$(completed 'dtool kill --no-such-x')"

# A project's file offers its groups once it is accepted.
printf '[groups]\nlate = "h9"\n' >dtool.toml
expect_equal '@lab @large' "$(completed 'dtool run --runs_on @l')"
printf '[groups]\n"l$(id)" = "h9"\n' >dtool.toml
expect_equal '@lab @large' "$(completed 'dtool run --runs_on @l')"
expect_exit 2 dtool run -- true
expect_error "a group's name holds letters"
printf '[groups]\nlate = "h9"\n' >dtool.toml
expect_exit 0 dtool trust --settings --yes
expect_equal '@lab @large @late' "$(completed 'dtool run --runs_on @l')"
rm dtool.toml

# Whatever words dtool offers.
nasty='x$(touch owned)`touch owned`;touch owned;"'"'"'\!*[a]{b,c} #<>~&|y'
cat >words <<END
#!/bin/bash
case \$1 in
  completion) exec "$DTOOL" "\$@" ;;
  __complete) printf '%s\tabout\n' $(printf %q "$nasty") ;;
  *) printf '%s' "\$2" >ran ;;
esac
END
chmod 755 words
expect_word() {
  eventually 20 shows touch
  "${tmux[@]}" send-keys Enter
  eventually 20 test -s ran
  finish
  expect_no_file owned
  expect_equal "$nasty" "$(cat ran)"
  rm ran
}

# Through readline itself, and with a file name that wants a backslash.
needs_program tmux
# Each time with a server of its own: one that has been ended may still take a session on and lose it.
tmux=() servers=0
type_in() {
  local shell=$1 keys=$2
  shift 2
  tmux=(tmux -L "$test_name-$$-$((++servers))" -f /dev/null)
  "${tmux[@]}" new-session -d -x 100 -y 30 -e "PS1=ready> " "$shell" "$@"
  eventually 20 shows 'ready>'
  "${tmux[@]}" send-keys "$keys"
  sleep 0.3
  "${tmux[@]}" send-keys Tab
}
shows() { "${tmux[@]}" capture-pane -p -J | grep -qF -- "$1"; }
finish() { ((servers == 0)) || "${tmux[@]}" kill-server 2>/dev/null || true; }
at_end finish

printf 'PS1="ready> "\nsource <(dtool completion bash)\n' >bashrc
type_in bash 'dtool kill ' --noprofile --rcfile bashrc
eventually 20 shows "dtool kill $run"
finish
type_in bash 'dtool run --runs_on=@lab,@lar' --noprofile --rcfile bashrc
eventually 20 shows '--runs_on=@lab,@large'
finish

printf 'PS1="ready> "\nsource <(dtool completion bash)\ncomplete -F _dtool words\nPATH=.:$PATH\n' >bashrc
type_in bash 'words kill x' --noprofile --rcfile bashrc
expect_word

if command -v zsh >/dev/null; then
  mkdir zdot
  printf 'PS1="ready> "\nautoload -Uz compinit; compinit -u -D\nsource <(dtool completion zsh)\ncompdef _dtool words\n' >zdot/.zshrc
  ZDOTDIR=$PWD/zdot type_in env 'words kill x' "ZDOTDIR=$PWD/zdot" "PATH=$PWD:$PATH" zsh -d -i
  expect_word
  for case in "kill |kill $run" 'run --runs_on @lar|run --runs_on @large' 'list --color=ne|list --color=never' 'plot --file o|plot --file own\ folder'; do
    ZDOTDIR=$PWD/zdot type_in env "dtool ${case%|*}" "ZDOTDIR=$PWD/zdot" zsh -d -i
    eventually 20 shows "dtool ${case#*|}"
    finish
  done
fi
if command -v fish >/dev/null; then
  printf 'function fish_prompt; echo -n "ready> "; end\nfunction fish_greeting; end\ndtool completion fish | source\n' >config.fish
  printf 'complete -c words -f -a "(__dtool_complete)"\n' >>config.fish
  type_in env 'words kill x' "PATH=$PWD:$PATH" "XDG_CONFIG_HOME=$PWD/fish" fish --no-config -i -C "source $PWD/config.fish"
  expect_word
  for case in "kill |kill $run" 'run --runs_on @lar|run --runs_on @large' 'list --color=ne|list --color=never' 'plot --file o|plot --file own\ folder'; do
    type_in env "dtool ${case%|*}" "XDG_CONFIG_HOME=$PWD/fish" fish --no-config -i -C "source $PWD/config.fish"
    eventually 20 shows "dtool ${case#*|}"
    finish
  done
fi
needs_program zsh
needs_program fish
