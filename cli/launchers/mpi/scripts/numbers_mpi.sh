# shellcheck shell=bash disable=SC2034,SC2154
# The numbers of one process that mpirun has started; its output goes to the machine's log. Arguments: the attempt (0: the first
# start), and the places of the machines that take part in it. Defined before: log, place (of this machine in the run),
# processes_of, slots_of (arrays, by place: the program's processes, and how many of them mpirun starts). Runs in the machine's
# state folder. Follows words.sh; environment.sh comes next.
# Numbers by the plan: place processes_of.
exec >> "$log" 2>&1 < /dev/null
attempt=$1
members=("${@:2}")
state=$PWD
rank=$OMPI_COMM_WORLD_RANK local_rank=$OMPI_COMM_WORLD_LOCAL_RANK
refuse_unless_numbers "$attempt" "${members[@]}" "$rank" "$local_rank"
machines=${#members[@]} world_size=0 processes=${processes_of[place]}
for ((i = 0; i < machines; i++)); do
  if [ "${members[i]}" = "$place" ]; then machine_id=$i first_rank=$world_size; fi
  ((world_size += processes_of[members[i]]))
done
kept_rank=$state/ranks/$attempt.$local_rank  # cli/run/host/kept_ranks.h reads it

# mpirun sends KILL to a process's group one second after TERM. dtool gives programs more time to end well.
apart=(setsid)

# Begins the record of this process: its pid and start time; at the end, its exit code.
record_begin() {
  local stat fields
  stat=$(< /proc/$$/stat)
  read -ra fields <<< "${stat##*) }"
  mkdir -p "$state/ranks"
  printf '%s %s\n' "$$" "${fields[19]}" > "$kept_rank.new" && mv -f "$kept_rank.new" "$kept_rank"
}
record_end() { echo "$1" > "$kept_rank.code.new" && mv -f "$kept_rank.code.new" "$kept_rank.code"; }
told=''
trap 'record_end "$?"' EXIT
trap 'told=told; : > "$kept_rank.told"; exit 143' TERM
record_begin
