#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tarball's dtool needs nothing but the C library and reaches a host; the wheel brings the same into an environment; the .deb
# and the .rpm hold what they should and say what they need.
# tests/packages installs them in systems of their own.
source "$(dirname "$0")/harness.sh"

build=$(dirname "$DTOOL")
version=$(dtool --version)
version=${version#dtool }

# A build without archives of libssh and the others has no portable dtool.
ninja -C "$build" -t query tarball >/dev/null 2>&1 || skip 'this build makes no tarball'
for program in dpkg-deb rpmbuild zip; do needs_program $program; done
expect_exit 0 ninja -C "$build" tarball wheel deb rpm

tarball=$build/packages/dtool-$version-linux-$(uname -m).tar.gz
expect_file "$tarball"
tar xzf "$tarball"
cd "dtool-$version-linux-$(uname -m)"

# ---- what the program needs
expect_exit 0 objdump -p bin/dtool
expect_equal 'ld-linux-x86-64.so.2 libc.so.6 libm.so.6' "$(sed -n 's/^ *NEEDED *//p' "$out" | sort | xargs)"
# The release is made on Debian 12.
! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || expect_equal GLIBC_2.34 "$({ objdump -T bin/dtool | grep -o 'GLIBC_[0-9.]*'; echo GLIBC_2.34; } | sort -V | tail -n 1)"

# ---- what comes with it
for file in share/doc/dtool/{LICENSE,README.md,CHANGELOG.md,licenses/libssh-dev} share/bash-completion/completions/dtool \
  share/zsh/site-functions/_dtool share/fish/vendor_completions.d/dtool.fish share/man/man1/dtool.1; do
  expect_file "$file"
done
mapfile -t commands < <(bin/dtool __complete '' | cut -f 1)
for command in "${commands[@]}"; do expect_file "share/man/man1/dtool-$command.1"; done

# ---- that it works: an exception crosses it, a host is reached, dtool-host is inside
expect_exit 0 bin/dtool --version
expect_output "^dtool $version\$"
expect_exit 2 bin/dtool run --no_such_flag
expect_error '^dtool: .*no_such_flag'
lab 2
expect_exit 0 bin/dtool command --runs_on "$DTOOL_LAB_RANGE" --command 'echo "on $(hostname)"'
expect_output 'on lab-.*-2'
expect_exit 0 bin/dtool run --runs_on "$DTOOL_LAB_RANGE" --no_sync --code_path '~' --follow -- bash -c 'echo "rank $RANK of $WORLD_SIZE"'
expect_output 'rank 1 of 2'

# ---- the wheel: the same program always gives the same one, its list is right, and pip brings the program and the pages
wheel=$(echo "$build/packages/dtool_ssh-$version"-py3-none-manylinux_*_"$(uname -m).whl")
expect_file "$wheel"
! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || expect_equal "manylinux_2_34_$(uname -m).whl" "${wheel##*-none-}"
cp "$wheel" "$work/first.whl"
expect_exit 0 ninja -C "$build" wheel
cmp "$work/first.whl" "$wheel"
# Package indexes refuse a file whose sizes stand behind it (bit 3).
python3 - "$wheel" "$version" <<'END'
import base64, csv, hashlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record, = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
rows = list(csv.reader(wheel.read(record).decode().splitlines()))
assert [row[0] for row in rows[:-1]] == sorted(set(wheel.namelist()) - {record}), rows
assert rows[-1] == [record, "", ""], rows[-1]
for name, hashed, size in rows[:-1]:
    wanted = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("=")
    assert (hashed, int(size)) == ("sha256=" + wanted, wheel.getinfo(name).file_size), name
assert not any(each.flag_bits & 8 for each in wheel.infolist())
assert [each.filename for each in wheel.infolist() if each.external_attr >> 16 & 0o111] == ["dtool_ssh-%s.data/scripts/dtool" % sys.argv[2]]
END
/usr/bin/python3 -m venv --without-pip "$work/environment"
expect_exit 0 env PYTHONPATH="$(echo /usr/share/python-wheels/pip-*.whl)" "$work/environment/bin/python3" -m pip install --no-index --disable-pip-version-check "$wheel"
cmp bin/dtool "$work/environment/bin/dtool"
diff -r share/man "$work/environment/share/man"
for file in bash-completion/completions/dtool zsh/site-functions/_dtool fish/vendor_completions.d/dtool.fish; do
  expect_file "$work/environment/share/$file"
done
expect_file "$(echo "$work"/environment/lib/python3*/site-packages/dtool_ssh-"$version".dist-info/licenses/libssh-dev)"
expect_exit 0 "$work/environment/bin/dtool" command --runs_on local --command 'echo "on this machine"'
expect_output 'on this machine'

# ---- the package of Debian
deb=$build/packages/dtool_$version-1_$(dpkg --print-architecture).deb
expect_exit 0 dpkg-deb --field "$deb" Depends Recommends
expect_output '^Depends: .*libc6 \(>= .*libssh-4 \(>= '
expect_output '^Recommends: .*openssh-client, rsync, screen'
expect_exit 0 dpkg-deb --contents "$deb"
for file in bin/dtool share/man/man1/dtool-run.1.gz share/bash-completion/completions/dtool share/doc/dtool/{copyright,changelog.gz}; do
  expect_output "root/root .* \\./usr/$file\$"
done
expect_no_output 'root/root .* \./(usr/local|home|root|opt|work)'
expect_exit 0 dpkg-deb --extract "$deb" "$work/deb"
expect_exit 0 "$work/deb/usr/bin/dtool" --version
expect_output "^dtool $version\$"

# ---- the packages of systems with rpm: dtool is the portable one, the trainer needs the libraries that built it
rpm=$build/packages/dtool-$version-1.$(uname -m).rpm
ask() { expect_exit 0 rpm --dbpath "$work/rpmdb" --query --package "$@"; }
ask --requires "$rpm"
expect_output '^libc\.so\.6\(GLIBC_2\.34\)'
expect_no_output 'libssh|libfmt|libtomlplusplus|libstdc'
ask --suggests "$rpm"
expect_output '^rsync'
ask --list "$rpm"
for file in bin/dtool share/man/man1/dtool-run.1 share/bash-completion/completions/dtool share/doc/dtool/{LICENSE,licenses/libssh-dev}; do
  expect_output "^/usr/$file"
done
expect_no_output '^/(usr/local|home|root|opt|work)'
mkdir "$work/rpm"
rpm2archive - <"$rpm" | tar xz -C "$work/rpm"
expect_exit 0 "$work/rpm/usr/bin/dtool" --version
expect_output "^dtool $version\$"
if [[ -x ${DTOOL_TRAINER:-} ]]; then
  trainer_rpm=$build/packages/dtool-trainer-$version-1.$(uname -m).rpm
  ask --requires "$trainer_rpm"
  expect_output '^libtorch(_cpu)?\.so'
  ask --list "$trainer_rpm"
  expect_output '^/usr/bin/dtool-trainer$'
fi
