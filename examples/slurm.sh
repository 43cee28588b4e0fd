#!/bin/sh
#SBATCH --job-name=blinkc
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00
# Schedules for every set of GPUs of a machine, by the tasks of a job array on a shared file system, and then the index:
#
#	array=$(sbatch --parsable --array=1-8 examples/slurm.sh topologies/mi250.xml schedules 8)
#	sbatch --dependency=afterok:$array --array=0 examples/slurm.sh topologies/mi250.xml schedules 8
#  Task I makes part I of the 8. One that was killed can be submitted again, --array=3, and goes on where it was. Task 0
# makes what is still missing, and the index. BLINKC names the compiler (default blinkc), BLINKC_OPTIONS its other
# options, as "--collectives all".
set -eu
if [ $# != 3 ]; then
	echo "usage: sbatch --array=1-TASKS examples/slurm.sh TOPOLOGY DIRECTORY TASKS" >&2
	exit 2
fi
task=${SLURM_ARRAY_TASK_ID:-0}
shard=
[ "$task" = 0 ] || shard=--shard=$task/$3
# shellcheck disable=SC2086 # words
exec "${BLINKC:-blinkc}" batch "$1" -o "$2" $shard --jobs "${SLURM_CPUS_PER_TASK:-1}" ${BLINKC_OPTIONS:-}
