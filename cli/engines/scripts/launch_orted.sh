# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Runs before orted, which mpirun starts on the other machines through its own ssh. So kill finds orted by the run's id in its
# environment, or has left its mark before. Arguments: orted's own command line.
cd "${0%/*}" || exit
for state in machine*/; do
  exec 9>> "${state}lock" || exit
  flock 9
  if [ -e "${state}killed" ]; then exit 143; fi
  exec 9>&-
done
exec "$@"
