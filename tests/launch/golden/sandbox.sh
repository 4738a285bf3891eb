#!/bin/bash
# Command 'sandbox', a server of job 'judge': what runs inside its step.
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge
job_command=sandbox

export GREETING='it'\''s fine'
export HF_HOME=/hf

echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"

cd -- /nemo_run/code || exit 1

# <port.sh>

choose_port 6000 "$SLURMD_NODENAME"
ref_sandbox_host=$job_host
ref_sandbox_port=$job_port
ref_sandbox_address="http://$job_host:$job_port"

job_argv=(
    ns
    sandbox
)
exec -- "${job_argv[@]}"
