# shellcheck shell=bash disable=SC2154
# How start.sh makes a run's job run: gives it to Slurm. Defined before: make_folders, array (sbatch's --array, or empty).
begin() {
  local options said code
  make_folders probe
  command -v sbatch > /dev/null || fail "sbatch is not there"
  options=(--parsable --chdir="$PWD" --open-mode=append)
  if [ -n "$array" ]; then
    options+=(--array="$array" --output="${state%/*}/job_%a.log")
  else
    options+=(--output="${log//%/%%}")
  fi
  said=$(sbatch "${options[@]}" ./batch "${state%/*}" 2> submit.err)
  code=$?
  if [ "$code" != 0 ] || [[ ! $said =~ ^[0-9]+ ]]; then fail "sbatch: $(tr '\n' ' ' < submit.err)"; fi
  echo "${said%%;*}" > job.new && mv job.new job
  answer job "${said%%;*}"
  answer started "job ${said%%;*}"
}
