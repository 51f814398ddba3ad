# shellcheck shell=bash
#
# Shared by the scripts that start servers (script/test, script/demo): packages,
# a temporary folder, a private copy of PostgreSQL, and a cleanup that leaves
# nothing running and nothing on disk, however the script ends.
#
# To be sourced under `set -euo pipefail`. The usual order:
#
#   rpin_require_root "$@"                # before anything is done or printed
#   rpin_install_packages "${RPIN_BASE_PACKAGES[@]}" ...
#   rpin_workdir                          # RPIN_WORK is for user postgres now
#   rpin_private_postgres                 # -> RPIN_PG_CONFIG, RPIN_BIN
#   rpin_copy_source "$RPIN_WORK/src"
#   rpin_build_install "$RPIN_WORK/src" [make arguments]
#   rpin_as_postgres [NAME=value ...] command ...
#
# The machine's own PostgreSQL installation and the checkout are only read.
#
# Environment: RPIN_KEEP=1 keeps the temporary folder (the servers are stopped
# all the same); RPIN_PG_MAJOR chooses the PostgreSQL version; TMPDIR the parent
# of the temporary folder.

RPIN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
RPIN_PG_MAJOR=${RPIN_PG_MAJOR:-15}

# What every script needs to build the extension and to start servers with it.
# shellcheck disable=SC2034
RPIN_BASE_PACKAGES=(
  "postgresql-$RPIN_PG_MAJOR" "postgresql-server-dev-$RPIN_PG_MAJOR"
  libpq-dev libkrb5-dev make gcc libc6-dev
)

rpin_die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# --- beginning and end -------------------------------------------------------

# Starts the script again as root if need be, and once more as a child of this
# shell. It returns in that child only; this shell waits, and cleans up when the
# child has ended, in whatever way, or when it is told to end.
#
# Two processes because of a trap's limits: bash holds it back while a program is
# in the foreground, and one that runs in the middle of a command substitution
# can fail or hang. This shell is always at the same place, a `wait`.
rpin_require_root() {
  local self
  if [ "${RPIN_SUPERVISOR:-}" = "$PPID" ]; then
    return 0
  fi
  self=$(cd "$(dirname "$0")" && pwd)/${0##*/}
  if [ "$(id -u)" -ne 0 ]; then
    rpin_become_root "$self" "$@"
  fi
  rpin_supervise "$self" "$@"
}

rpin_become_root() {
  local name switches=()
  command -v sudo >/dev/null ||
    rpin_die "needs root (packages are installed, servers run as user postgres), and there is no sudo; run it as root"
  # sudo empties the environment; our own switches should survive it
  for name in $(compgen -e RPIN_) TMPDIR; do
    if [ -n "${!name:-}" ]; then
      switches+=("$name=${!name}")
    fi
  done
  exec sudo env "${switches[@]}" bash "$@"
}

# The temporary folder has its name before it exists, and the traps are set before
# that, so that there is no moment at which something is left that nobody knows
# of. SIGINT would be ignored by what runs in the background, were it not set back.
rpin_supervise() {
  local status=0
  RPIN_WORK=$(readlink -f "${TMPDIR:-/tmp}")/$(printf 'rpin.%08x%08x' "$SRANDOM" "$SRANDOM")
  export RPIN_WORK RPIN_SUPERVISOR=$$
  trap 'rpin_end 129' HUP
  trap 'rpin_end 130' INT
  trap 'rpin_end 143' TERM
  mkdir -m 755 "$RPIN_WORK" || exit
  env --default-signal=HUP,INT,QUIT,TERM bash "$@" <&0 &
  wait $! || status=$?
  rpin_end "$status"
}

rpin_end() {
  trap '' HUP INT TERM
  set +eu
  # too young, perhaps, to be found by its environment
  kill -TERM "$!" 2>/dev/null
  rpin_stop_all
  rpin_wait_for_apt
  rpin_drop_overrides
  if [ "${RPIN_KEEP:-}" != 1 ]; then
    rm -rf -- "$RPIN_WORK"
  elif [ -d "$RPIN_WORK" ]; then
    echo "kept: $RPIN_WORK" >&2
  fi
  exit "$1"
}

# Every process that was started beneath us, whatever it detached itself from:
# its environment names our folder, or its program lies in it (a server
# overwrites its environment with its title). Asked as root and as postgres,
# because in a container root may not look into another user's process.
rpin_pids() (
  # or those that look would find themselves
  export -n RPIN_WORK
  {
    rpin_scan "RPIN_WORK=$RPIN_WORK" "$RPIN_WORK"
    if getent passwd postgres >/dev/null; then
      rpin_setpriv bash -c "$(declare -f rpin_scan); rpin_scan \"\$@\"" \
        bash "RPIN_WORK=$RPIN_WORK" "$RPIN_WORK"
    fi
  } </dev/null | sort -un
)

rpin_scan() {
  # both complain about what they may not see, and about what has just ended
  {
    grep -lzxF "$1" /proc/[0-9]*/environ || true
    find /proc/[0-9]*/exe -maxdepth 0 -lname "$2/*" || true
  } 2>/dev/null | cut -d/ -f3
}

# Servers get an immediate shutdown, which frees their shared memory; their
# children go with them. Everything else is terminated. What is still there
# after thirty seconds is killed.
rpin_stop_all() {
  local pid pids give_up=$((SECONDS + 30))
  local -A signalled=()

  while pids=$(rpin_pids) && [ -n "$pids" ] && [ "$SECONDS" -lt $((give_up + 5)) ]; do
    for pid in $pids; do
      if [ "$SECONDS" -ge "$give_up" ]; then
        kill -KILL "$pid" 2>/dev/null
      elif [ -z "${signalled[$pid]:-}" ]; then
        signalled[$pid]=1
        rpin_stop_one "$pid"
      fi
    done
    sleep 0.1
  done
}

rpin_stop_one() {
  local parent
  case $(rpin_status "$1" Name) in
    postgres)
      parent=$(rpin_status "$1" PPid)
      if [ "$(rpin_status "${parent:-0}" Name)" != postgres ]; then
        kill -QUIT "$1" 2>/dev/null
      fi
      ;;
    ?*) kill -TERM "$1" 2>/dev/null ;;
  esac
}

rpin_status() {
  sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" 2>/dev/null
}

# --- packages ----------------------------------------------------------------

# rpin_install_packages name...: from Debian, only what is missing. Servers that
# come with a package are neither created nor started.
rpin_install_packages() {
  local missing=() name rpin_apt_prefix=()
  for name in "$@"; do
    case $name in
      # node from elsewhere conflicts with Debian's packages
      nodejs) command -v node >/dev/null && continue ;;
      npm) command -v npm >/dev/null && continue ;;
    esac
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
      missing+=("$name")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi

  echo "installing ${missing[*]}"
  rpin_set_overrides
  rpin_apt update
  rpin_apt install -y --no-install-recommends --download-only "${missing[@]}"
  # Not to be stopped halfway, which would leave packages in pieces: in a session
  # of its own, out of reach of a Ctrl-C, and without the mark of what the
  # cleanup stops. The cleanup waits for it.
  rpin_apt_prefix=(setsid --wait env -u RPIN_WORK RPIN_INSTALLING="$RPIN_WORK")
  rpin_apt install -y --no-install-recommends "${missing[@]}"
  for name in "${missing[@]}"; do
    # or it would start with the next boot
    case $name in
      etcd-server | haproxy | patroni | pgbouncer | pgpool2 | redis-server | prometheus | prometheus-postgres-exporter)
        update-rc.d "${name/#etcd-server/etcd}" disable >/dev/null 2>&1 || true
        ;;
    esac
  done
  rpin_drop_overrides
}

rpin_apt() {
  local log=$RPIN_WORK/apt.log
  if ! "${rpin_apt_prefix[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rpin_die "apt-get $1 failed"
  fi
}

rpin_wait_for_apt() {
  local told=
  while grep -qszxF "RPIN_INSTALLING=$RPIN_WORK" /proc/[0-9]*/environ; do
    [ -n "$told" ] || echo "waiting until the packages are installed" >&2
    told=yes
    sleep 0.2
  done
}

# Two files for the time of the installation, neither replacing one that is
# there. Each names its owner.
rpin_createcluster_d=/etc/postgresql-common/createcluster.d
rpin_override_files=("$rpin_createcluster_d/replica_pin.conf" /usr/sbin/policy-rc.d)

rpin_set_overrides() {
  mkdir -p "$rpin_createcluster_d"
  rpin_override "${rpin_override_files[0]}" 644 \
    "# of $RPIN_WORK, while replica_pin's script installs packages" \
    'create_main_cluster = false'
  rpin_override "${rpin_override_files[1]}" 755 \
    '#!/bin/sh' \
    "# of $RPIN_WORK, while replica_pin's script installs packages: start no service" \
    'exit 101'
}

# One that a killed run left is taken over.
rpin_override() {
  local path=$1 mode=$2
  shift 2
  if [ ! -e "$path" ] || grep -q "while replica_pin's script installs" "$path"; then
    printf '%s\n' "$@" >"$path"
    chmod "$mode" "$path"
  fi
}

rpin_drop_overrides() {
  local path
  for path in "${rpin_override_files[@]}"; do
    if grep -q "# of $RPIN_WORK, " "$path" 2>/dev/null; then
      rm -f -- "$path"
    fi
  done
  # only if they are empty
  rmdir "$rpin_createcluster_d" "${rpin_createcluster_d%/*}" 2>/dev/null || true
}

# --- places ------------------------------------------------------------------

# rpin_workdir: makes RPIN_WORK a place where servers can run as user postgres.
rpin_workdir() {
  getent passwd postgres >/dev/null ||
    rpin_die "there is no user postgres; install postgresql-$RPIN_PG_MAJOR first"
  rpin_setpriv test -x "${RPIN_WORK%/*}" ||
    rpin_die "user postgres may not enter ${RPIN_WORK%/*}; set TMPDIR to another folder"
  # a server's socket path is limited to 107 bytes, 44 of which it needs below
  [ ${#RPIN_WORK} -le 63 ] ||
    rpin_die "the name of ${RPIN_WORK%/*} is too long; set TMPDIR to another folder"

  mkdir -m 755 "$RPIN_WORK/tmp"
  chown postgres: "$RPIN_WORK" "$RPIN_WORK/tmp"
}

# rpin_copy_source dest: the checkout as it is, without build products.
rpin_copy_source() {
  local dest=$1
  mkdir -p "$dest"
  rpin_source_files | tar -C "$RPIN_ROOT" --null --no-recursion -T - -cf - |
    tar -C "$dest" --no-same-owner -xf -
  chown -R postgres: "$dest"
}

# The files that belong to the checkout, each ended by a zero byte.
rpin_source_files() {
  local name git=(git -c "safe.directory=$RPIN_ROOT" -C "$RPIN_ROOT")
  if [ -e "$RPIN_ROOT/.git" ] && command -v git >/dev/null; then
    "${git[@]}" ls-files -z -co --exclude-standard |
      while IFS= read -r -d '' name; do
        # deleted, but not yet for git
        if [ -e "$RPIN_ROOT/$name" ] || [ -L "$RPIN_ROOT/$name" ]; then
          printf '%s\0' "$name"
        fi
      done
  else
    (cd "$RPIN_ROOT" && find . \
      \( -name .git -o -name node_modules -o -name __pycache__ -o -path ./build \
      -o -path ./results -o -path ./output_iso -o -path ./tmp_check -o -path ./log \) -prune \
      -o ! -type d ! -name '*.o' ! -name '*.bc' ! -name '*.so' \
      ! -name '*.gcda' ! -name '*.gcno' ! -name 'regression.*' -print0)
  fi
}

# rpin_private_postgres: a copy of PostgreSQL beneath RPIN_WORK to install into. One
# of another version, beside it, after another RPIN_PG_MAJOR was set.
# PostgreSQL finds its directories relative to its program, so a copy that keeps
# their arrangement uses its own libraries and its own extensions.
rpin_private_postgres() {
  local root=$RPIN_WORK/pg lib=/usr/lib/postgresql/$RPIN_PG_MAJOR
  if [ ! -x "$lib/bin/postgres" ] || [ ! -x "$lib/bin/pg_config" ]; then
    rpin_die "there is no PostgreSQL $RPIN_PG_MAJOR in $lib"
  fi

  mkdir -p "$root/usr/lib/postgresql" "$root/usr/share/postgresql" "$root/usr/include"
  cp -a "$lib" "$root/usr/lib/postgresql/"
  cp -a "/usr/share/postgresql/$RPIN_PG_MAJOR" "$root/usr/share/postgresql/"
  ln -sfn /usr/include/postgresql "$root/usr/include/postgresql"
  # what is installed on this machine is not under test
  find "$root$lib" "$root/usr/share/postgresql/$RPIN_PG_MAJOR" \
    -name 'replica_pin*' -prune -exec rm -rf {} +
  chown -R -h postgres: "$root"

  RPIN_BIN=$root$lib/bin
  RPIN_PG_CONFIG=$RPIN_BIN/pg_config
  export RPIN_BIN RPIN_PG_CONFIG
  case $("$RPIN_PG_CONFIG" --sharedir):$("$RPIN_PG_CONFIG" --pkglibdir) in
    "$root"/*:"$root"/*) ;;
    *) rpin_die "the copy of PostgreSQL $RPIN_PG_MAJOR does not use its own directories" ;;
  esac
}

# rpin_build_install dest [make arguments]: builds the copied source and installs
# it into the private PostgreSQL.
rpin_build_install() {
  local dest=$1 log=$RPIN_WORK/build.log
  shift
  if ! {
    rpin_wait_as_postgres make -C "$dest" -j"$(nproc)" PG_CONFIG="$RPIN_PG_CONFIG" "$@" all &&
      rpin_wait_as_postgres make -C "$dest" PG_CONFIG="$RPIN_PG_CONFIG" "$@" install
  } >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# --- running things as user postgres -----------------------------------------

rpin_setpriv() {
  setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

# Clean, but for how this machine reaches a package registry. SIGINT is not
# inherited as ignored, which bash would otherwise do to anything that runs in the
# background.
rpin_environment() {
  local path=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin node name
  node=$(command -v node || true)
  rpin_env=(env -i '--default-signal=INT,QUIT'
    PATH="${RPIN_BIN:+$RPIN_BIN:}$path${node:+:${node%/*}}"
    LC_ALL=C HOME="$RPIN_WORK" TMPDIR="$RPIN_WORK/tmp" RPIN_WORK="$RPIN_WORK"
    ${RPIN_BIN:+RPIN_BIN="$RPIN_BIN" RPIN_PG_CONFIG="$RPIN_PG_CONFIG"})
  for name in http_proxy https_proxy no_proxy NODE_EXTRA_CA_CERTS; do
    if [ -n "${!name:-}" ]; then
      rpin_env+=("$name=${!name}")
    fi
  done
}

# rpin_as_postgres [NAME=value ...] command ...
rpin_as_postgres() {
  local rpin_env
  rpin_environment
  rpin_setpriv "${rpin_env[@]}" "$@"
}

# The same in the background; its pid is rpin_pid. For what takes long: in a
# session of its own, where a Ctrl-C does not tear down servers halfway, while
# the script itself answers a signal at once and stops everything in order.
rpin_start_as_postgres() {
  local rpin_env
  rpin_environment
  setsid setpriv --reuid=postgres --regid=postgres --init-groups "${rpin_env[@]}" "$@" </dev/null &
  rpin_pid=$!
}

rpin_wait_as_postgres() {
  rpin_start_as_postgres "$@"
  wait "$rpin_pid"
}
