#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `--environment` chooses: by the hosts' Python and not by this machine's, whatever form the file has, and again if pip's
# settings, a constraint or a lock's project have changed.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program git
needs_tool_wheels
PIP_FIND_LINKS+=" $PWD/wheels"
export PATH=/usr/bin:/bin:/usr/sbin:/sbin

wheel() { python3 "$here/make_wheel.py" "$@"; }
main='def main(): print(__name__)'
for version in 1.0 2.0 3.0; do wheel wheels words "$version" "$main"; done
wheel wheels greet 1.0 "$main" 'words==1.0; python_version < "3.12"' 'words==2.0; python_version >= "3.12"' 'more; extra == "extra"'
wheel wheels more 1.0 "$main"

# choose [KEY=JSON...] FILE: the names and versions for a host with Python 3.13 or that of `version`, into $chosen.
scripts=$work/scripts.py
cat "$source_folder"/cli/ready/scripts/{read_requirements,python_packages}.py >"$scripts"
request() {
  python3 - "$@" <<'END'
import json, os, sys
*settings, file = sys.argv[1:]
work = os.environ["HOME"]
wanted = dict(file=file, extras=[], groups=[], held=[], keeps_held=False, folder="", sees_system=False, version="3.13.1", processor=os.uname().machine, glibc=41,
              home=work + "/.dtool", store=work + "/store", kept=work + "/kept", packages=work + "/packages", scratch=work + "/scratch")
wanted.update((name, json.loads(value)) for name, _, value in (each.partition("=") for each in settings))
print(json.dumps(wanted))
END
}
run_scripts() {
  rm -rf "$HOME"/{packages,scratch}
  mkdir -p "$HOME"/{store,packages,scratch}
  expect_exit "$1" timeout 100 python3 -I "$scripts" "$(request "${@:2}")"
}
choose() {
  run_scripts 0 "$@"
  chosen=$(xargs <"$HOME/packages/lock.txt")
}
refuses() {
  run_scripts 1 "${@:2}"
  expect_error "^error: .*$1"
}
lines() { printf '%s\n' "$@"; }
# Each shape by itself, with nothing that is remembered.
shape() {
  rm -f "$HOME/kept"
  choose requirements.txt
  expect_equal "$1" "$chosen"
}

# Markers are the hosts', in both directions, and of what packages want as well.
lines greet 'more; python_version < "3.12"' >requirements.txt
shape 'greet==1.0 words==2.0'
expect_equal 'python3.13' "$(ls "$HOME/packages/lib")"
choose 'version="3.11.2"' requirements.txt
expect_equal 'greet==1.0 more==1.0 words==1.0' "$chosen"
expect_output '^[0-9a-f]{64} [0-9a-f]{64}$'
read -r _ key <"$out"
choose 'version="3.13.1"' requirements.txt
expect_no_output "$key"

# The shapes of a requirements.txt.
printf '\xef\xbb\xbfgreet\r\nmore==1.0  # a comment\r\n' >requirements.txt
shape 'greet==1.0 more==1.0 words==2.0'
lines 'greet # grüße' | iconv -t UTF-16 >requirements.txt
shape 'greet==1.0 words==2.0'
lines 'greet[extra]' >requirements.txt
shape 'greet==1.0 more==1.0 words==2.0'
printf 'words\\\n>=1.0,\\\n<3\n' >requirements.txt
shape 'words==2.0'
mkdir -p below
lines '-r more.txt' '-c limits.txt' 'words' >below/base.txt
lines more >below/more.txt
lines 'words<3' >below/limits.txt
lines '-rbelow/base.txt' >requirements.txt
shape 'more==1.0 words==2.0'
export OWN_VERSION=1.0
# shellcheck disable=SC2016
lines 'words==${OWN_VERSION}' >requirements.txt
shape 'words==1.0'
sum=$(sha256sum wheels/words-1.0-*.whl)
lines "words==1.0 --hash=sha256:${sum%% *}" >requirements.txt
shape 'words==1.0'
lines "words==1.0 --hash=sha256:${key}" >requirements.txt
refuses '[Hh]ash' requirements.txt
lines ./wheels/words-1.0-py3-none-any.whl >requirements.txt
shape 'words==1.0'
mkdir -p elsewhere
mv wheels/more-1.0-py3-none-any.whl elsewhere/
lines '--find-links elsewhere' more >requirements.txt
shape 'more==1.0'
mv elsewhere/more-1.0-py3-none-any.whl wheels/

# Sources: a folder, -e, an sdist, a repository of git, an address.
mkdir -p source
lines '[build-system]' 'requires = []' 'build-backend = "backend"' 'backend-path = ["."]' '[project]' 'name = "source"' 'version = "1.0"' >source/pyproject.toml
cat >source/backend.py <<'END'
import pathlib, subprocess, sys
def build_wheel(folder, config_settings=None, metadata_directory=None):
    subprocess.run([sys.executable, MAKE_WHEEL, folder, "source", "1.0", pathlib.Path("value").read_text()], check=True)
    return "source-1.0-py3-none-any.whl"
END
sed -i "s|MAKE_WHEEL|\"$here/make_wheel.py\"|" source/backend.py
echo 'VALUE = 1' >source/value
for line in ./source '-e ./source' '--editable source' "source @ file://$PWD/source" "file://$PWD/source#egg=source"; do
  lines "$line" >requirements.txt
  echo "VALUE = ${#line}" >source/value
  shape 'source==1.0'
  expect_equal "VALUE = ${#line}" "$(cat "$HOME"/packages/lib/python3.13/site-packages/source.py)"
  expect_output '^[0-9a-f]{64} *$' # with no key: its content may change
done
tar -czf source-1.0.tar.gz --transform 's/^source/source-1.0/' source
lines './source-1.0.tar.gz' >requirements.txt
shape 'source==1.0'
git -C source init -q
git -C source add -A
git -C source -c user.name=t -c user.email=t@t commit -qm t
lines "git+file://$PWD/source" >requirements.txt
shape 'source==1.0'
lines "git+file://$PWD/source@$(git -C source rev-parse HEAD)#egg=source" >requirements.txt
shape 'source==1.0'
mkdir -p index/simple/{words,torch}
cp wheels/words-2.0-*.whl index/simple/words/
wheel index/simple/torch torch 2.0 "$main"
python3 -u -m http.server 0 --bind 127.0.0.1 -d index >"$work/server" 2>&1 & server=$!
at_end "kill $server 2>/dev/null"
eventually 10 grep -q 'port [0-9]' "$work/server"
address=http://127.0.0.1:$(sed -nE 's/.* port ([0-9]+) .*/\1/p' "$work/server")
lines "$address/simple/words/words-2.0-py3-none-any.whl" >requirements.txt
shape 'words==2.0'

# What was chosen stays, until the file, a constraint or the index wants otherwise.
lines 'words<3' >requirements.txt
shape 'words==2.0'
lines words >requirements.txt
choose requirements.txt
expect_equal 'words==2.0' "$chosen"
read -r hash key <"$out"
lines 'words==1.0' >limits.txt
export PIP_CONSTRAINT=$PWD/limits.txt
choose requirements.txt
expect_equal 'words==1.0' "$chosen"
expect_no_output "$hash"
expect_no_output "$key"
lines 'words<1' >limits.txt
refuses 'words' requirements.txt
unset PIP_CONSTRAINT
rm "$HOME/kept"
PIP_NO_INDEX=0 PIP_FIND_LINKS='' PIP_INDEX_URL=$address/simple choose requirements.txt
expect_equal 'words==2.0' "$chosen"
# A wheel of the same name and version with other content is another environment.
read -r hash key <"$out"
wheel index/other/words words 2.0 'def main(): print("another")'
PIP_NO_INDEX=0 PIP_FIND_LINKS='' PIP_INDEX_URL=$address/other choose requirements.txt
expect_no_output "$hash"
expect_no_output "$key"

# What the hosts have already is not brought, and what is too new for them is refused.
lines 'greet' >requirements.txt
rm "$HOME/kept"
choose 'held=["words==2.0"]' 'sees_system=true' requirements.txt
expect_equal 'greet==1.0' "$chosen"
lines 'no such' >requirements.txt
refuses 'parse requirement in .requirements\.txt. ' requirements.txt
lines '--no-such-option' >requirements.txt
refuses 'the option --no-such-option' requirements.txt

# A uv.lock: with an index of its own, a member of the workspace, git, extras and groups.
uv=$(find "$HOME/.dtool/uv" -path '*/bin/uv')
mkdir -p project/member
cp source/* project/member/
sed -i 's/name = "source"/name = "member"/' project/member/pyproject.toml
sed -i 's/source/member/g' project/member/backend.py
cat >project/pyproject.toml <<END
[project]
name = "project"
version = "1"
requires-python = ">=3.11"
dependencies = ["greet", "torch", "member", "source"]
[project.optional-dependencies]
extra = ["more"]
[dependency-groups]
plots = ["words"]
dev = ["more"]
[tool.uv]
find-links = ["$PWD/wheels"]
[tool.uv.workspace]
members = ["member"]
[[tool.uv.index]]
name = "own"
url = "$address/simple"
explicit = true
[[tool.uv.index]]
name = "all"
url = "$address/simple"
default = true
[tool.uv.sources]
torch = { index = "own" }
member = { workspace = true }
source = { git = "file://$PWD/source" }
END
unset PIP_NO_INDEX PIP_FIND_LINKS
(cd project && "$uv" lock --quiet --no-python-downloads)
rm -f "$HOME/kept"
choose project/uv.lock
expect_equal 'greet==1.0 member==1.0 source==1.0 torch==2.0 words==2.0' "$chosen"
choose 'version="3.11.2"' project/uv.lock
expect_equal 'greet==1.0 member==1.0 source==1.0 torch==2.0 words==1.0' "$chosen"
choose 'extras=["extra"]' 'groups=["plots"]' project/uv.lock
expect_equal 'greet==1.0 member==1.0 more==1.0 source==1.0 torch==2.0 words==2.0' "$chosen"
refuses 'none' 'extras=["none"]' project/uv.lock
sed -i 's/"greet", /"greet", "more", /' project/pyproject.toml
refuses 'needs to be updated' project/uv.lock

# A host with another Python than this machine's.
system_root trixie
as_root
lab 1 --root "$REPLY"
export PIP_NO_INDEX=1 PIP_FIND_LINKS=${DTOOL%/*}/tool_wheels
PIP_FIND_LINKS+=" $PWD/wheels"
lines greet >requirements.txt
run_there() { expect_exit "$1" timeout 120 "$DTOOL" run --follow --runs_on h1 --environment requirements.txt "${@:2}"; }
run_there 0 -- bash -c 'greet && python3 -c "import sys, words; print(sys.version_info[:2], words.__file__)"'
expect_output '^machine0: greet$'
expect_output '^machine0: \(3, 13\) /root/.dtool/environments/[0-9a-f]{64}/venv/lib/python3.13/site-packages/words.py$'
expect_equal '2.0' "$(on 1 sh -c 'ls ~/.dtool/environments/*/venv/lib/python3.13/site-packages' | sed -n 's/^words-\(.*\)\.dist-info$/\1/p')"

# The hosts' own packages are seen where that is wanted, and missed where they are not.
run_there 0 --system_site_packages -- python3 -c 'import sys; print([each for each in sys.path if each.endswith("dist-packages")])'
expect_output 'dist-packages'
on 1 mkdir -p /usr/local/lib/python3.13/dist-packages/torch-2.0.dist-info
on 1 sh -c 'printf "Metadata-Version: 2.1\nName: torch\nVersion: 2.0\n" >/usr/local/lib/python3.13/dist-packages/torch-2.0.dist-info/METADATA'
run_there 0 -- greet
expect_error 'the hosts have torch==2.0, and the environment of requirements.txt is without torch: --system_site_packages lets it see'
lines greet torch >requirements.txt
run_there 0 --system_site_packages -- python3 -c 'import importlib.metadata as all; print(all.version("torch"), all.version("words"))'
expect_output '^machine0: 2.0 2.0$'
run_there 2 -- greet
expect_error 'uv says: .*torch'

# Without uv pip's way would be this machine's Python's.
export PIP_FIND_LINKS=$PWD/wheels
rm -r "$HOME/.dtool/uv"
run_there 2 -- greet
expect_error 'without uv pip chooses it, and for this machine.s Python alone, 3\.[0-9.]*: the hosts have 3\.13'
