#!/bin/bash
#SBATCH --job-name=me:exp-judge
#SBATCH --partition=gpu
#SBATCH --account=acc
#SBATCH --time=01:00:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --mail-type=FAIL
#SBATCH --mail-user=me@example.org
#SBATCH --output=/logs/judge/judge_%j_sbatch.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH hetjob
#SBATCH --job-name=me:exp-judge
#SBATCH --partition=cpu
#SBATCH --account=acc
#SBATCH --time=01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive

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

# The controller may have taken a job although it was too slow to say so to who submitted it. Such a job is none of ours
# where its submission was given up, or where another one was submitted in its place.
if [[ -n ${NEWSKILLS_COPY:-} ]]; then
    job_own=$SLURM_JOB_ID
    [[ -z ${SLURM_ARRAY_JOB_ID:-} ]] || job_own=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    for job_look in 1 2 3; do # a file system may show what has been there before
        job_handle=""
        [[ ! -e $job_folder/job.handle ]] || read -r job_handle <"$job_folder/job.handle"
        if [[ ! -e $job_folder/job.withdrawn && :${job_handle:-$job_own}: == *:$job_own:* ]]; then break; fi
        if [[ $job_look -eq 3 ]]; then
            echo "Nobody waits for job $job_own: its submission was given up, or repeated. It does nothing."
            exit 1
        fi
        sleep 2
    done
fi

# The first node of each group, under names that programs expect.
SLURM_MASTER_NODE_HET_GROUP_0=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0" | head -n 1)
export SLURM_MASTER_NODE_HET_GROUP_0
SLURM_MASTER_NODE_HET_GROUP_1=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_1" | head -n 1)
export SLURM_MASTER_NODE_HET_GROUP_1
export SLURM_MASTER_NODE=$SLURM_MASTER_NODE_HET_GROUP_0

# How tasks find each other, for programs with MPI inside: by PMIx where this cluster has it.
job_mpi=none
if srun --overlap --nodes=1 --ntasks=1 --mpi=pmix true </dev/null >/dev/null 2>&1; then job_mpi=pmix; fi

# Preemption sends TERM to all steps and kills the job some time later; Slurm queues it again only if it is still there.
make_room() {
    local shown began preempted
    shown=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null) || return
    [[ $shown =~ StartTime=([0-9T:-]+) ]] && began=${BASH_REMATCH[1]} || return
    [[ $shown =~ PreemptTime=([0-9T:-]+) ]] && preempted=${BASH_REMATCH[1]} || return
    [[ ! $preempted < $began ]] || return # that was an earlier life
    say "this job makes room for another one: waiting for its end, to be queued again"
    sleep 3600
}

# run_step NAME SRUN...: runs a step. srun is called again where it could not create the step because the controller was
# slow or away; after 600 seconds of that the job ends with 75, so that a copy, or a later submission, goes on.
# When a task fails, srun ends the others and takes the highest code of all, often their 143: the first code counts.
run_step() {
    local job_name=$1 job_child="" job_told="" job_code job_size job_first job_until=$((SECONDS + 600)) job_gate
    shift
    exec {job_gate}<> <(:)
    trap 'job_told=yes; [[ -z $job_child ]] || end_step "$job_child"' TERM
    while [[ -z $job_told ]]; do
        job_size=$(stat -c %s -- "$job_logs/$job_name.log")
        job_child=""
        "$@" {job_gate}<&- &
        await_child "$!" "$job_gate"
        job_child=$!
        [[ -z $job_told ]] || end_step "$job_child"
        until wait "$job_child"; job_code=$?; ! kill -0 "$job_child" 2>/dev/null; do :; done
        if [[ $job_code -gt 128 && -z $job_told ]]; then
            job_first=$(tail -c "+$((job_size + 1))" -- "$job_logs/$job_name.log" |
                grep -Eam 1 '^srun: error: [^ ]+: tasks? [0-9,-]+: ')
            if [[ $job_first == *": Exited with exit code "* ]]; then job_code=${job_first##* }; fi
        fi
        if [[ $job_code -eq 0 || -n $job_told || -e $job_folder/$job_name.step ]] ||
            ! tail -c "+$((job_size + 1))" -- "$job_logs/$job_name.log" | grep -Eq '[Tt]imed out|[Uu]nable to contact slurm controller|[Zz]ero [Bb]ytes were|[Cc]ommunication (connection|shutdown)|[Mm]essage (receive|send) failure|[Rr]esource temporarily unavailable|Connection (refused|reset)|Transport endpoint|controller in standby|[Pp]rotocol authentication error'; then
            exit "$job_code"
        fi
        if ((SECONDS >= job_until)); then
            say "the controller did not create the step of '$job_name'"
            exit 75
        fi
        say "srun could not create the step of '$job_name': the controller does not answer; trying again"
        sleep 5 &
        job_child=$!
        wait "$job_child"
    done
    exit 143
}

# end_step PID: srun, which forgets a signal that comes while it starts its tasks.
end_step() { while kill -s TERM "$1" && sleep 1; do :; done 2>/dev/null & }

start_all() {
    start server judge-server \
        run_step judge-server srun \
        --job-name=judge-server \
        --overlap \
        --export=ALL \
        --het-group=0 \
        --nodes=2 \
        --ntasks=2 \
        --ntasks-per-node=1 \
        --mpi="$job_mpi" \
        --kill-on-bad-exit=1 \
        --wait=60 \
        --container-image=/images/vllm.sqsh '--container-mounts=/data/models:/models:ro,/work space:/ws,/jobs/exp/judge'\''s job:/jobs/exp/judge'\''s job,/logs/judge:/logs/judge,/jobs/packages/0f3a:/nemo_run/code' \
        --no-container-mount-home \
        --container-workdir=/nemo_run/code \
        --container-env=HF_TOKEN,SLURM_MASTER_NODE,SLURM_MASTER_NODE_HET_GROUP_0,SLURM_MASTER_NODE_HET_GROUP_1 \
        bash "$job_folder"/judge-server.sh
    start server sandbox \
        run_step sandbox srun \
        --job-name=sandbox \
        --overlap \
        --export=ALL \
        --het-group=1 \
        --nodes=1 \
        --ntasks=1 \
        --ntasks-per-node=1 \
        --mpi=none \
        bash "$job_folder"/sandbox.sh
    start client eval \
        run_step eval srun \
        --job-name=eval \
        --overlap \
        --export=ALL \
        --het-group=1 \
        --nodes=1 \
        --ntasks=1 \
        --ntasks-per-node=1 \
        --mpi=none \
        bash "$job_folder"/eval.sh
}

# send_signal SIGNAL NAME PID
send_signal() {
    # srun kills its tasks when it gets TERM itself, so signals go to the step, which has the command's name.
    local id name group ids=$SLURM_JOB_ID
    for ((group = 1; group < ${SLURM_HET_SIZE:-1}; group++)); do
        name=SLURM_JOB_ID_HET_GROUP_$group
        ids+=,${!name}
    done
    if [[ $1 != TERM || -e $job_folder/$2.step ]]; then # else Slurm may know the step before there is a task to get it
        while read -r id name; do
            if [[ $name == "$2" ]] && scancel --signal="$1" "$id"; then return 0; fi
        done < <(squeue --steps --noheader --jobs="$ids" --format='%i %j')
    fi
    kill -s "$1" -- "$3" 2>/dev/null # there is no step yet, or no answer
}

out_of_time() {
    say "run the same command again to go on from here (or give --dependent_jobs=N next time)"
}

# await_child PID FD: a new child of bash loses signals until it has dropped the script's traps; then it closes FD, which
# it must not have. (`read -t` with so short a time may leave bash 5.2 with all signals blocked on a busy machine.)
await_child() { while [[ /proc/$1/fd/$2 -ef /dev/fd/$2 ]]; do sleep 0.01; done; }

