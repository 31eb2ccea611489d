#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --environment requirements.txt`: Python packages are resolved once, sent, and built on hosts that reach nothing but
# each other. The second run builds nothing, and what cannot work is named before anything starts.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_tool_wheels
lab 3

wheel() { python3 "$here/make_wheel.py" wheels "$@"; }
wheel words 2.0 'WORD = "hello"'
wheel greet 1.0 'import words; print(words.WORD, "from", __file__); main = lambda: None' 'words>=2'
printf '%s\n' '--no-index' '--find-links wheels' 'greet' >requirements.txt

run_greet() { expect_exit "${1:-0}" timeout 120 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" "${@:2}" --environment requirements.txt -- python3 -c 'import greet'; }
environments_on() { on "$1" bash -c 'ls ~/.dtool/environments'; }

run_greet
for machine in 0 1 2; do expect_output "^machine$machine: hello from /root/\.dtool/environments/[0-9a-f]{64}/venv/lib/python3"; done
expect_error '^built requirements.txt on '
for host in 1 2 3; do
  expect_equal "$(environments_on 1)" "$(environments_on "$host")"
  on "$host" test ! -e "/root/.dtool/environments/$(environments_on 1)/wheels"
done
first=$(environments_on 1)

# Nothing has changed: nothing is resolved, sent or built, but for a host that lost it.
run_greet
expect_no_error '^built '
on 2 bash -c 'rm -r ~/.dtool/environments'
run_greet
expect_error '^built requirements.txt on 198\.18\.[0-9]*\.2$'
expect_equal "$first" "$(environments_on 2)"
expect_equal 1 "$(find "$HOME/.dtool/wheels" -name '*.resolved' | wc -l)"

# What a host's log-in adds to Python's path is not used, and is told.
on 2 bash -c 'mkdir ~/other && echo "print(\"another one\")" >~/other/greet.py && echo "export PYTHONPATH=\$HOME/other" >~/.bashrc'
run_greet
expect_output '^machine1: hello from /root/\.dtool/environments/'
expect_no_output 'another one'
expect_error '2: PYTHONPATH=/root/other of the log-in does not count beside the environment'
run_greet 0 --export PYTHONPATH=/root/other
expect_output '^machine1: another one'
on 2 rm /root/.bashrc

# A half-built environment does not count, nor one whose Python has gone.
on 3 bash -c 'rm ~/.dtool/environments/*/complete'
run_greet
on 3 bash -c 'rm ~/.dtool/environments/*/venv/bin/python3'
run_greet

# A run that edits a package, with size and time as they were, changes nothing for the next one. While a run uses an environment
# that was changed it stays, and a further run is refused.
# shellcheck disable=SC2016
expect_exit 0 timeout 120 "$DTOOL" run --runs_on h2 --follow --environment requirements.txt -- bash -c 'cd "$(dirname "$(python3 -c "import words; print(words.__file__)")")" &&
  touch -r words.py at && sed -i s/hello/HELLO/ words.py && touch -r at words.py && rm at'
run_greet
expect_output '^machine1: hello from'
expect_error '\.2: the environment there is not as it was built: lib/python3[^ ]*/words\.py was changed; it is built anew$'
expect_exit 0 timeout 120 "$DTOOL" run --runs_on h2 --environment requirements.txt -- sleep 600
on 2 bash -c 'rm ~/.dtool/environments/*/venv/lib/python3*/site-packages/words.py'
run_greet 2
expect_error '\.2: the environment .* is not as it was built: .*/words\.py is gone, and the run sleep_[^ ]* uses it$'
expect_exit 0 dtool kill --all --yes --delete

# Another version in the same folder of wheels is another environment.
rm wheels/words*
wheel words 2.1 'WORD = "good day"'
run_greet
expect_output '^machine2: good day from'
expect_equal 2 "$(environments_on 1 | wc -l)"

# A folder here that is named pip is not run, a source without `./` is built each time, and a line may be long.
mkdir -p pip src/source
echo 'raise SystemExit("the code folder is no pip")' >pip/__main__.py
printf '%s\n' '[build-system]' 'requires = []' 'build-backend = "backend"' 'backend-path = ["."]' >src/source/pyproject.toml
cat >src/source/backend.py <<'END'
import pathlib, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "source-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as packed:
        packed.writestr("source.py", pathlib.Path("value").read_text())
        packed.writestr("source-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: source\nVersion: 1.0\n")
        packed.writestr("source-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr("source-1.0.dist-info/RECORD", "")
    return name
END
printf '%s\n' '--no-index' '--find-links wheels' "# $(head -c 500000 /dev/zero | tr '\0' a)" "-r $(head -c 500000 /dev/zero | tr '\0' a)" >long.txt
expect_exit 2 timeout 60 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" --environment long.txt -- true
expect_error 'long.txt: it cannot be read: .*File name too long'
printf '%s\n' '--no-index' '--find-links wheels' 'greet' 'src/source' >sources.txt
for value in 1 2; do
  echo "VALUE = $value" >src/source/value
  expect_exit 0 timeout 120 "$DTOOL" run --follow --runs_on "${DTOOL_LAB_HOSTS%%,*}" --environment sources.txt -- python3 -c 'import source; print("value", source.VALUE)'
  expect_output "^machine0: value $value\$"
done
rm -r pip src

# Mistakes: nothing is started.
refuses() {
  local pattern=$1
  shift
  expect_exit 2 timeout 60 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" "$@" -- python3 -c 'import greet'
  expect_error "$pattern"
}
refuses '--environment missing.txt: there is no such file' --environment missing.txt
touch notes.md
refuses 'neither a requirements.txt, a uv.lock nor an environment.yml' --environment notes.md
refuses '--env_activate_path leads to another' --environment requirements.txt --env_activate_path /opt/env
printf '%s\n' '--no-index' '--find-links wheels' 'greet' 'no_such_package' >wrong.txt
refuses 'uv says: .*no-such-package' --environment wrong.txt
expect_equal '' "$(find "$HOME/.dtool/wheels" -name '.draft.*')"
fault hide h2 python3
run_greet 2
expect_error 'there is no python3 of 3.8 or later'
expect_error '^nothing was started'
fault unhide h2 python3
expect_equal 0 "$(find "$HOME/.dtool/killfiles" -newer wrong.txt | wc -l)"

# Without uv pip's own way serves hosts with this machine's Python.
mv "$HOME/.dtool/uv" "$work/uv"
for _ in 1 2; do
  PATH=/usr/bin:$PATH PIP_FIND_LINKS='' run_greet
  expect_output '^machine2: good day from'
done
expect_no_error '^built '
