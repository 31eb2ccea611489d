# shellcheck shell=bash disable=SC2154
# Whether Slurm takes the job, asked without giving it one. Defined before: lack_of, batch (the job's script; empty: none is queued).
for program in sbatch srun squeue scontrol scancel; do
  command -v "$program" > /dev/null && continue
  lack_of "$program is not there" "--runs_on names a login host of the cluster; on Debian Slurm's commands are in slurm-client"
  return
done
[ -n "$batch" ] || return  # in an allocation that is there already
said=$(timeout 40 sbatch --test-only <<< "$batch" 2>&1) && return
# A job may wait for nodes that are down just now, which this question does not allow for; sbatch itself will say.
if [[ $said == *'node configuration is not available'* ]] &&
  [ -n "$(timeout 20 sinfo --noheader --states down,drain,fail,unknown,no_respond --format %D 2> /dev/null)" ]; then
  return
fi
hint='sinfo shows the partitions and their nodes'
case $said in
  *'contact slurm controller'* | *'Unable to contact'* | '') hint='scontrol ping tells whether slurmctld is up; ask who runs the cluster' ;;
  *ccount* | *QOS* | *qos*) hint='sacctmgr show associations user=YOU lists accounts and qualities of service' ;;
esac
lack_of "Slurm does not take the job: ${said:-it did not answer within 40 s}" "$hint"
