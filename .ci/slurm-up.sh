#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm-up.sh - a real Slurm cluster, with N emulated nodes, on one Linux machine.  Needs root.
#
#   slurm-up.sh [--nodes 4] [--cpus 16] [--mem 64000] [--gpus 8] [--gpu-type h100]
#               [--mode netns|loopback] [--accounting dbd|filetxt|none]
#               [--user NAME] [--sshd PORT|no] [--state DIR] [--subnet 10.213.0]
#               [--no-system-link] [--fresh] [--install]
#
# netns (default): every node is a slurmd in its own network + UTS + mount namespace:
#   own hostname (n1..nN), own IP, own loopback, own port space, /etc/hosts that knows all nodes.
#   slurmctld, slurmdbd and mariadbd live in one more namespace ("ctl").
# loopback: nodes share the host's network; each slurmd has 127.0.1.<i> and its own UTS namespace.
# CPUs, memory and GPUs are declared, not real (SlurmdParameters=config_overrides; GPUs are copies of /dev/null).
# Running it again on a healthy cluster with the same options changes nothing and returns at once.
set -euo pipefail

NODES=4 CPUS=16 MEM=64000 GPUS=8 GPU_TYPE=h100 MODE=netns ACCT=dbd RUNUSER="" SSHD=2222
STATE=${SLURM_DEV_STATE:-${TMPDIR:-/tmp}/slurm-dev} SUBNET=10.213.0 LINK=1 FRESH=0 INSTALL=0
while [ $# -gt 0 ]; do case $1 in
  --nodes) NODES=$2; shift;; --cpus) CPUS=$2; shift;; --mem) MEM=$2; shift;;
  --gpus) GPUS=$2; shift;; --gpu-type) GPU_TYPE=$2; shift;; --mode) MODE=$2; shift;;
  --accounting) ACCT=$2; shift;; --user) RUNUSER=$2; shift;; --sshd) SSHD=$2; shift;;
  --state) STATE=$2; shift;; --subnet) SUBNET=$2; shift;;
  --no-system-link) LINK=0;; --fresh) FRESH=1;; --install) INSTALL=1;;
  -h|--help) sed -n '3,18p' "$0" | cut -c3-; exit 0;;
  *) echo "unknown option $1" >&2; exit 2;; esac; shift; done
HERE=$(cd "$(dirname "$0")" && pwd)
NSP=sd-                                   # prefix of network namespaces and links
log() { printf '[slurm-up %2ss] %s\n' "$SECONDS" "$*"; }
die() { echo "slurm-up: $*" >&2; exit 1; }
alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
wait_for() { local n=$1; shift; for ((k = 0; k < n * 10; k++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; return 1; }

[ "$(id -u)" = 0 ] || die "run as root"
if [ "$INSTALL" = 1 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm slurm-wlm-basic-plugins \
    munge iproute2 rsync openssh-server $([ "$ACCT" = dbd ] && echo slurmdbd mariadb-server) >/dev/null
fi
for b in slurmctld slurmd munged; do command -v $b >/dev/null || die "$b missing: run again with --install (Debian packages slurm-wlm, munge)"; done

WANT="$NODES $CPUS $MEM $GPUS $GPU_TYPE $MODE $ACCT $RUNUSER $SSHD $SUBNET"
export SLURM_CONF=$STATE/slurm.conf
if [ "$FRESH" = 0 ] && [ "$(cat "$STATE/options" 2>/dev/null)" = "$WANT" ] && alive "$STATE/run/slurmctld.pid" \
   && [ "$(timeout 5 sinfo -h -N -t idle,mix,alloc -o %N 2>/dev/null | sort -u | wc -l)" = "$NODES" ]; then
  log "already up"; echo "export SLURM_CONF=$SLURM_CONF"; exit 0
fi
[ -d "$STATE" ] && "$HERE/slurm-down.sh" --state "$STATE" $([ "$FRESH" = 1 ] && echo --purge) >/dev/null 2>&1 || true
mkdir -p "$STATE"/{run,log,munge,ctl,spool,gpu,mysql,ssh,ns}; chmod 755 "$STATE" "$STATE"/*; chmod 711 "$STATE/munge"
echo "$WANT" > "$STATE/options"

# ---- names and addresses --------------------------------------------------------------------------------
# (Slurm names end in a number without leading zeros; slurmctld lives on "ctl")
if [ "$MODE" = netns ]; then CTLIP=$SUBNET.2; ip_of() { echo "$SUBNET.$((10 + $1))"; }
else CTLIP=127.0.1.2; ip_of() { echo "127.0.1.$((10 + $1))"; }; fi
{ echo "127.0.0.1 localhost"; echo "::1 localhost ip6-localhost"; echo "$CTLIP ctl"
  for i in $(seq "$NODES"); do echo "$(ip_of "$i") n$i"; done
  [ "$MODE" = netns ] && echo "$SUBNET.1 login $(hostname)" || true; } > "$STATE/hosts"

# ---- network --------------------------------------------------------------------------------------------
if [ "$MODE" = netns ]; then
  ip link show ${NSP}br >/dev/null 2>&1 || ip link add ${NSP}br type bridge
  ip addr replace "$SUBNET.1/24" dev ${NSP}br; ip link set ${NSP}br up
  add_ns() { # name address
    [ -e "/run/netns/$NSP$1" ] || ip netns add "$NSP$1"
    ip link show "$NSP$1" >/dev/null 2>&1 || ip link add "$NSP$1" type veth peer name eth0 netns "$NSP$1"
    ip link set "$NSP$1" master ${NSP}br up
    ip -n "$NSP$1" addr replace "$2/24" dev eth0; ip -n "$NSP$1" link set eth0 up; ip -n "$NSP$1" link set lo up
    ip -n "$NSP$1" route replace default via "$SUBNET.1"
  }
  add_ns ctl "$CTLIP"; for i in $(seq "$NODES"); do add_ns "n$i" "$(ip_of "$i")"; done
fi
# run a command "on" a node: own hostname and /etc/hosts, and (netns) own network
on() { local name=$1; shift
  local pre=(); [ "$MODE" = netns ] && pre=(nsenter --net="/run/netns/$NSP$name")
  "${pre[@]}" unshare --uts --mount --propagation private sh -c \
    'hostname "$1"; mount --bind "$2" /etc/hosts; shift 2; exec "$@"' sh "$name" "$STATE/hosts" "$@"; }

# ---- munge ----------------------------------------------------------------------------------------------
[ -s "$STATE/munge/key" ] || { head -c 1024 /dev/urandom > "$STATE/munge/key"; chmod 400 "$STATE/munge/key"; }
MSOCK=$STATE/munge/socket
munged --force --key-file="$STATE/munge/key" --socket="$MSOCK" --pid-file="$STATE/run/munged.pid" \
  --log-file="$STATE/log/munged.log" --seed-file="$STATE/munge/seed" 2>>"$STATE/log/munged.err"
wait_for 5 munge -S "$MSOCK" -n || die "munged: see $STATE/log"
log "munged up"

# ---- accounting database --------------------------------------------------------------------------------
DBPORT=13306
if [ "$ACCT" = dbd ]; then
  command -v slurmdbd >/dev/null && command -v mariadbd >/dev/null || die "slurmdbd/mariadbd missing: --install, or --accounting filetxt"
  [ -s "$STATE/mysql/pw" ] || { head -c 18 /dev/urandom | base64 | tr -d '+/=' > "$STATE/mysql/pw"; chmod 600 "$STATE/mysql/pw"; }
  if [ ! -d "$STATE/mysql/data/mysql" ]; then
    mariadb-install-db --no-defaults --user=root --datadir="$STATE/mysql/data" --skip-test-db \
      --auth-root-authentication-method=normal >"$STATE/log/mysql-install.log" 2>&1
    log "database made"
  fi
  on ctl setsid mariadbd --no-defaults --user=root --datadir="$STATE/mysql/data" --socket="$STATE/mysql/sock" \
    --bind-address=127.0.0.1 --port=$DBPORT --pid-file="$STATE/run/mariadbd.pid" --innodb-buffer-pool-size=128M \
    --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --skip-name-resolve --innodb-lock-wait-timeout=900 \
    >"$STATE/log/mariadbd.log" 2>&1 </dev/null &
  wait_for 30 mariadb-admin --no-defaults -uroot -S "$STATE/mysql/sock" ping || die "mariadbd: see $STATE/log/mariadbd.log"
  mariadb --no-defaults -uroot -S "$STATE/mysql/sock" -e "create database if not exists slurm_acct;
    create or replace user slurm@'127.0.0.1' identified by '$(cat "$STATE/mysql/pw")'; grant all on slurm_acct.* to slurm@'127.0.0.1';"
  log "mariadbd up"
  cat > "$STATE/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$MSOCK
DbdHost=ctl
DbdAddr=$CTLIP
DbdPort=16819
SlurmUser=root
PidFile=$STATE/run/slurmdbd.pid
LogFile=$STATE/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DBPORT
StorageUser=slurm
StoragePass=$(cat "$STATE/mysql/pw")
StorageLoc=slurm_acct
CONF
  chmod 600 "$STATE/slurmdbd.conf"
  ACCT_CONF="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$CTLIP
AccountingStoragePort=16819
AccountingStoragePass=$MSOCK
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment,job_env,job_script"
elif [ "$ACCT" = filetxt ]; then
  ACCT_CONF="AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$STATE/log/jobcomp.txt"
else ACCT_CONF="AccountingStorageType=accounting_storage/none"; fi

# ---- slurm.conf -----------------------------------------------------------------------------------------
COMM=""; [ "$MODE" = loopback ] && COMM="CommunicationParameters=NoCtldInAddrAny,NoInAddrAny"
cat > "$SLURM_CONF" <<CONF
ClusterName=dev
SlurmctldHost=ctl($CTLIP)
SlurmctldPort=16817
SlurmdPort=16818
$COMM
AuthType=auth/munge
AuthInfo=socket=$MSOCK
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$STATE/ctl
SlurmdSpoolDir=$STATE/spool/%n
SlurmctldPidFile=$STATE/run/slurmctld.pid
SlurmdPidFile=$STATE/run/slurmd.%n.pid
SlurmctldLogFile=$STATE/log/slurmctld.log
SlurmdLogFile=$STATE/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
# no cgroups
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
MpiDefault=none
MailProg=/bin/true
# quick reactions, for tests
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=1,bf_min_age_reserve=0,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=5
MinJobAge=3600
InactiveLimit=0
OverTimeLimit=0
SlurmctldTimeout=30
SlurmdTimeout=60
BatchStartTimeout=60
ReturnToService=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
$ACCT_CONF
CONF
GRES=""
if [ "$GPUS" -gt 0 ]; then
  GRES="Gres=gpu:$GPU_TYPE:$GPUS"
  # Slurm wants character devices (copies of /dev/null do); only with File= does it set CUDA_VISIBLE_DEVICES
  files=""; [ "$GPUS" = 1 ] && gf=0 || gf="[0-$((GPUS - 1))]"
  for ((g = 0; g < GPUS; g++)); do rm -f "$STATE/gpu/nvidia$g"; mknod -m 666 "$STATE/gpu/nvidia$g" c 1 3 2>/dev/null && files="File=$STATE/gpu/nvidia$gf"; done
  echo "NodeName=n[1-$NODES] Name=gpu Type=$GPU_TYPE ${files:-Count=$GPUS}" > "$STATE/gres.conf"
else : > "$STATE/gres.conf"; fi
for i in $(seq "$NODES"); do
  echo "NodeName=n$i NodeHostname=n$i NodeAddr=$(ip_of "$i") Sockets=1 CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=$MEM $GRES State=UNKNOWN" >> "$SLURM_CONF"
  mkdir -p "$STATE/spool/n$i"
done
cat >> "$SLURM_CONF" <<CONF
PartitionName=batch Nodes=ALL Default=YES PriorityTier=10 MaxTime=4:00:00 DefaultTime=1:00:00 State=UP
PartitionName=interactive Nodes=n1 PriorityTier=20 MaxTime=30:00 DefaultTime=10:00 PreemptMode=OFF State=UP
PartitionName=preemptible Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=2 MaxTime=UNLIMITED DefaultTime=1:00:00 State=UP
PartitionName=shared Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:4 MaxTime=1:00:00 DefaultTime=10:00 State=UP
CONF
echo "CgroupAutomount=no" > "$STATE/cgroup.conf"
chmod 644 "$STATE"/{slurm,gres,cgroup}.conf
if [ "$LINK" = 1 ]; then for f in slurm.conf gres.conf cgroup.conf; do
  [ -e "/etc/slurm/$f" ] && [ ! -L "/etc/slurm/$f" ] || { mkdir -p /etc/slurm; ln -sfn "$STATE/$f" "/etc/slurm/$f"; }; done; fi

# ---- daemons --------------------------------------------------------------------------------------------
port_open() { on ctl bash -c "exec 3<>/dev/tcp/$1/$2"; }
if [ "$ACCT" = dbd ]; then
  SLURM_CONF=$STATE/slurm.conf on ctl env SLURM_CONF="$STATE/slurmdbd.conf" slurmdbd
  wait_for 30 port_open "$CTLIP" 16819 || die "slurmdbd: see $STATE/log/slurmdbd.log"; log "slurmdbd up"
  # a user must have an association only where AccountingStorageEnforce says so: not set here
  timeout 10 sacctmgr -i -Q add cluster dev >/dev/null 2>&1 || true
  timeout 10 sacctmgr -i -Q add account dev description=dev organization=dev >/dev/null 2>&1 || true
  for u in root $RUNUSER; do timeout 10 sacctmgr -i -Q add user "$u" account=dev >/dev/null 2>&1 || true; done
fi
on ctl slurmctld -f "$SLURM_CONF"
wait_for 20 port_open "$CTLIP" 16817 || die "slurmctld: see $STATE/log/slurmctld.log"
for i in $(seq "$NODES"); do on "n$i" slurmd -N "n$i" -f "$SLURM_CONF"; done
ready() { alive "$STATE/run/slurmctld.pid" || return 1; [ "$(timeout 5 sinfo -h -N -t idle,mix,alloc -o %N | sort -u | wc -l)" = "$NODES" ]; }
wait_for 30 ready || { timeout 5 sinfo -N -l; die "not all nodes came up: see $STATE/log"; }
log "$NODES nodes idle"

# ---- user and sshd (loopback only) ----------------------------------------------------------------------
[ -z "$RUNUSER" ] || id "$RUNUSER" >/dev/null 2>&1 || useradd -m -s /bin/bash -p "*" "$RUNUSER"   # "*": no password, yet not a locked account
if [ "$SSHD" != no ] && command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] && [ "$SSHD" != no ]; then
  mkdir -p /run/sshd
  [ -f "$STATE/ssh/host" ] || ssh-keygen -q -t ed25519 -N '' -C dev-host -f "$STATE/ssh/host"
  [ -f "$STATE/ssh/id" ] || ssh-keygen -q -t ed25519 -N '' -C dev-user -f "$STATE/ssh/id"
  cp "$STATE/ssh/id.pub" "$STATE/ssh/authorized_keys"; chmod 644 "$STATE/ssh/authorized_keys"
  cat > "$STATE/ssh/sshd_config" <<CONF
ListenAddress 127.0.0.1
Port $SSHD
HostKey $STATE/ssh/host
PidFile $STATE/run/sshd.pid
AuthorizedKeysFile $STATE/ssh/authorized_keys
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
MaxSessions 50
MaxStartups 100
SetEnv SLURM_CONF=$SLURM_CONF
Subsystem sftp internal-sftp
CONF
  echo "[127.0.0.1]:$SSHD $(cut -d' ' -f1,2 "$STATE/ssh/host.pub")" > "$STATE/ssh/known_hosts"
  cat > "$STATE/ssh/config" <<CONF
Host slurm-dev
  HostName 127.0.0.1
  Port $SSHD
  User ${RUNUSER:-root}
  IdentityFile $STATE/ssh/id
  IdentitiesOnly yes
  UserKnownHostsFile $STATE/ssh/known_hosts
CONF
  /usr/sbin/sshd -f "$STATE/ssh/sshd_config" && log "sshd on 127.0.0.1:$SSHD: ssh -F $STATE/ssh/config slurm-dev sinfo"
fi
log "up"; echo "export SLURM_CONF=$SLURM_CONF"
