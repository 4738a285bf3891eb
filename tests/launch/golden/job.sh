#!/bin/bash
#SBATCH --job-name=judge
#SBATCH --open-mode=append

# Job 'judge'. Each command below runs its own script in this folder and has its own log.

case ${BASH_VERSION:-none} in
    none | [1-4].* | 5.0.*)
        echo "This job needs bash 5.1 or later on the node that runs job.sh; this is ${BASH_VERSION:-no bash}." >&2
        exit 1
        ;;
esac
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge

export NODE_0=n1
export NODE_1=n2

start_all() {
    start server judge-server \
        srun \
        --het-group=0 \
        --nodelist "$NODE_0" '--chdir=/with space' \
        bash "$job_folder"/judge-server.sh
    start server sandbox \
        srun \
        --het-group=1 \
        --nodelist "$NODE_1" '--chdir=/with space' \
        bash "$job_folder"/sandbox.sh
    start client eval \
        srun \
        --het-group=1 \
        --nodelist "$NODE_1" '--chdir=/with space' \
        bash "$job_folder"/eval.sh
}

# send_signal SIGNAL NAME PID
send_signal() {
    scancel --signal="$1" "$(<"$job_folder/$2.step")"
}

out_of_time() {
    scontrol requeue "$SLURM_JOB_ID"
}

# <await_child.sh>

# <job.sh>
