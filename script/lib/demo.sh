# shellcheck shell=bash
#
# For the demos: how they talk, servers, connections that stay open, and the
# table of what was expected and seen. To be sourced after setup.sh.

# seconds for anything that is waited for
demo_patience=30
demo_step=0
demo_checks=()
# by the name of a node: its port, and both ends of its open connection
declare -A demo_port=() demo_to=() demo_from=()

# --- talking -----------------------------------------------------------------

demo_style() {
  bold='' dim='' red='' green='' plain=''
  if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
  fi
}

step() {
  demo_step=$((demo_step + 1))
  printf '\n%s\n' "${bold}$demo_step. $1${plain}"
}

# say line...: each argument on a line of its own.
say() {
  local line
  for line in "$@"; do
    printf '%s\n' "${line:+   $line}"
  done
}

# Text on standard input, beneath a statement.
indented() {
  sed -e 's/^/             /' -e 's/ *$//'
}

# --- servers -----------------------------------------------------------------

# Runs a command that has nothing to say unless it fails.
quietly() {
  local log=$RPIN_WORK/command.log
  if ! rpin_wait_as_postgres "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rpin_die "$1 failed"
  fi
}

# demo_primary replica...: starts a primary that samples replicas of these names.
# -> demo_entries, as in its configuration
demo_primary() {
  local data=$RPIN_WORK/primary name entries=()
  demo_sockets=$RPIN_WORK/run
  mkdir "$demo_sockets"
  chown postgres: "$demo_sockets"
  demo_port[primary]=5432
  for name in "$@"; do
    demo_port[$name]=$((5432 + ${#demo_port[@]}))
    entries+=("$name=$demo_sockets:${demo_port[$name]}")
  done
  demo_entries=$(printf ', %s' "${entries[@]}")
  demo_entries=${demo_entries#, }

  # peer: only user postgres of this machine gets in; no autovacuum: its commits
  # are not part of any story
  quietly initdb -D "$data" -U postgres -A peer -E UTF8 --no-locale --no-sync
  cat >>"$data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$demo_sockets'
fsync = off
autovacuum = off
shared_preload_libraries = 'replica_pin'
replica_pin.replicas = '$demo_entries'
replica_pin.conninfo = 'dbname=postgres user=postgres'
END
  demo_start primary
}

# demo_replica name [setting]: a streaming replica of the primary. The setting is
# written where ALTER SYSTEM RESET finds it.
demo_replica() {
  local data=$RPIN_WORK/$1
  quietly pg_basebackup -D "$data" -R -X stream -c fast --no-sync \
    -d "host=$demo_sockets port=${demo_port[primary]} user=postgres application_name=$1"
  if [ -n "${2:-}" ]; then
    printf '%s\n' "$2" >>"$data/postgresql.auto.conf"
  fi
  demo_start "$1"
}

# Starts a node and opens a connection to it.
demo_start() {
  quietly pg_ctl -D "$RPIN_WORK/$1" -l "$RPIN_WORK/$1.log" \
    -o "-p ${demo_port[$1]} -c cluster_name=$1" -t "$demo_patience" -w start
  demo_connect "$1"
}

# --- connections -------------------------------------------------------------

# demo_connect node: a connection that stays open, as an application's pool
# keeps it: psql between two pipes, both of which we hold open at both ends.
demo_connect() {
  local to=$RPIN_WORK/$1.to from=$RPIN_WORK/$1.from descriptor
  mkfifo -m 600 "$to" "$from"
  chown postgres: "$to" "$from"
  exec {descriptor}<>"$to"
  demo_to[$1]=$descriptor
  exec {descriptor}<>"$from"
  demo_from[$1]=$descriptor
  # shellcheck disable=SC2016
  rpin_start_as_postgres bash -c 'exec psql -XAtq -d "$3" <"$1" >"$2" 2>&1' bash "$to" "$from" \
    "host=$demo_sockets port=${demo_port[$1]} user=postgres dbname=postgres"
}

# try node statements [end]: -> answer, sqlstate
try() {
  local line
  printf '%s%s\n\\echo answered :SQLSTATE\n' "$2" "${3:-;}" >&"${demo_to[$1]}"
  answer=
  while IFS= read -r -t "$demo_patience" -u "${demo_from[$1]}" line; do
    case $line in
      'answered '*)
        sqlstate=${line#answered }
        # a table ends with an empty line
        answer=${answer%$'\n'}
        answer=${answer%$'\n'}
        return 0
        ;;
    esac
    answer+=$line$'\n'
  done
  rpin_die "no answer from $1 to: $2; it said: ${answer:-nothing}"
}

# ask node statement [end]: the same, of a statement that has to succeed.
ask() {
  try "$@"
  [ "$sqlstate" = 00000 ] || rpin_die "$1 answered $answer ($sqlstate) to: $2"
}

# ask, and print both.
show() {
  demo_print "$1" "$2"
  ask "$@"
  if [ -n "$answer" ]; then
    indented <<<"$answer"
  fi
}

# show, for a table with the names of its columns.
show_table() {
  show "$1" "$2" ' \g (format=aligned tuples_only=off footer=off)'
}

# demo_print node statements: each statement on a line of its own.
demo_print() {
  local statement node=$1
  while IFS= read -r statement; do
    printf '   %s%-8s%s  %s\n' "$dim" "$node" "$plain" "$statement"
    node=
  done <<<"${2//; /$';\n'};"
}

# wait_for node condition: until it is true. -> milliseconds
# shellcheck disable=SC2034
wait_for() {
  local begin=${EPOCHREALTIME//[!0-9]/} give_up=$((SECONDS + demo_patience))
  while ask "$1" "SELECT $2" && [ "$answer" != t ]; do
    if [ "$SECONDS" -ge "$give_up" ]; then
      say "${red}waited $demo_patience s in vain on $1 for: $2$plain"
      check 'nothing is waited for in vain' yes no
      demo_verdict
      exit 1
    fi
    sleep 0.005
  done
  milliseconds=$(((${EPOCHREALTIME//[!0-9]/} - begin) / 1000))
}

# --- the verdict -------------------------------------------------------------

# check what expected seen
check() {
  demo_checks+=("$(printf '%s\t' "$@")")
}

# The table; fails if anything is not as expected.
demo_verdict() {
  local row what expected seen ok failed=0 format='   %-44s  %-22s  %-22s  %s\n'
  [ ${#demo_checks[@]} -gt 0 ] || rpin_die "nothing was checked"
  step 'Was it as promised?'
  # shellcheck disable=SC2059
  printf "$format" '' expected seen ok
  for row in "${demo_checks[@]}"; do
    IFS=$'\t' read -r what expected seen <<<"$row"
    ok=${green}yes${plain}
    if [ "$expected" != "$seen" ]; then
      ok=${red}NO${plain}
      failed=$((failed + 1))
    fi
    # shellcheck disable=SC2059
    printf "$format" "$what" "$expected" "$seen" "$ok"
  done
  printf '\n   %s\n' "${#demo_checks[@]} checks, $failed failed, $SECONDS s"
  [ "$failed" -eq 0 ]
}
