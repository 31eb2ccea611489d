#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# .git is not sent, so DTOOL_GIT_COMMIT tells each program the commit that its code was at, under every launcher; `-dirty` stands
# behind it where the checkout has changes, and it is not set where there is no checkout. A run that is started inside `srun --pty`
# has that too, and does not wait for processors that the user's own step holds.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
let_h1_reach_the_others
mkdir "$work/plain" "$work/code"
cd "$work/code"
git init -q .
echo 'echo "the commit is <${DTOOL_GIT_COMMIT-not set}>, $(ls -A | xargs)"' >tell.sh
git add tell.sh
git -c user.name=someone -c user.email=someone@example.org commit -q -m first
commit=$(git rev-parse HEAD)
told() { # LINES COMMIT FLAGS...: each of so many processes says that commit
  local lines=$1 wanted=$2
  shift 2
  expect_exit 0 timeout 120 "$DTOOL" run --follow "$@" -- bash tell.sh
  expect_equal "$lines" "$(grep -c "the commit is <$wanted>" "$out")"
}

told 2 "$commit" --runs_on h2,h3
expect_no_output '\.git( |$)'
! command -v mpirun >/dev/null || told 2 "$commit" --launcher mpi --runs_on h2,h3
told 2 "$commit" --launcher slurm --runs_on h1 --nodes 2
# Outputs are no change of the code: here they are in its folder.
told 1 "$commit" --runs_on local
told 1 "$commit" --runs_on local
echo '# changed' >>tell.sh
told 2 "$commit-dirty" --runs_on h2,h3
git checkout -q tell.sh
touch new
told 1 "$commit-dirty" --runs_on h2
rm new
mkdir below
cp tell.sh below
cd below
told 1 "$commit-dirty" --runs_on h2
cd ..
rm -r below
cp tell.sh "$work/plain"
cd "$work/plain"
told 1 'not set' --runs_on h2

# The allocation has one processor for this step, which is taken.
# shellcheck disable=SC2029
on h1 mkdir steps
cp "$work/code/tell.sh" "$DTOOL_LAB_FOLDER/host1/root/steps"
expect_exit 0 timeout 100 ssh -tt h1 "cd steps && srun --nodes 1 --ntasks 1 --pty timeout --kill-after 5 80 $DTOOL run --follow -- bash tell.sh"
expect_output 'the commit is <not set>'
expect_exit 0 timeout 100 "$DTOOL" kill --all --yes --delete
