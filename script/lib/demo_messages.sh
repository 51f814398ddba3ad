# shellcheck shell=bash
#
# The demo "messages": a message about a new note is faster than the note.
# Consumers that resolve the note first and think later lose the update; consumers
# that hand the raw message to route_envelope() first lose none. The programs are
# those of examples/notes.
#
# What is not set here is set by demo.sh.
# shellcheck disable=SC2154

messages_replicas=(east west)
messages_count=30
messages_consumers=2
# longer than a consumer can take to hear of a note
messages_delay='2s'

demo_messages() {
  rpin_install_packages python3 python3-psycopg2
  messages_servers
  messages_envelope
  messages_run A after 'Run A: consumers that decide after they have resolved the id'
  messages_run B before 'Run B: consumers that decide before'
  messages_show_log
  messages_run C before 'Run C: decided and counted, and not enforced'
  messages_compare
}

# --- the story ---------------------------------------------------------------

messages_servers() {
  local name
  step 'A primary, two replicas, publishers and consumers'
  demo_primary "${messages_replicas[@]}"
  show primary 'CREATE EXTENSION replica_pin'
  show primary 'CREATE TABLE note (id int GENERATED ALWAYS AS IDENTITY, body text)'
  for name in "${messages_replicas[@]}"; do
    demo_replica "$name" "recovery_min_apply_delay = '$messages_delay'"
  done
  wait_for primary "count(*) = ${#messages_replicas[@]} AND bool_and(eligible) FROM replica_pin.replicas"
  say '' "Both replicas apply every commit $messages_delay late. That is more than a message takes."
}

messages_envelope() {
  step 'What travels'
  say 'The publisher commits a note. Then it tells about it: the id, the position, the request.'
  ask primary "INSERT INTO note (body) VALUES ('the first')"
  demo_print primary "INSERT INTO note (body) VALUES ('the first')"
  show primary "SELECT replica_pin.stamp('{\"id\": 1}', 'request-0')"
  messages_first=$answer
  say '' 'A consumer hands the raw text to the primary before it looks at the id:'
  show_table primary "SELECT replica, reason, replicas FROM replica_pin.route_envelope('$messages_first')"
  say 'replica is NULL: the primary. It says why, and the log has a line with the request.'
}

# messages_run name decides title -> messages_lost[name], messages_primary[name]
declare -A messages_lost=() messages_primary=() messages_all=()
messages_run() {
  local run=$1 decides=$2
  step "$3"
  if [ "$run" = C ]; then
    show primary 'ALTER SYSTEM SET replica_pin.enforce_percent = 0'
    show primary 'SELECT pg_reload_conf()'
    wait_for primary "current_setting('replica_pin.enforce_percent') = '0'"
  fi
  ask primary 'SELECT replica_pin.reset_stats()'
  messages_log=$(stat -c %s "$RPIN_WORK/primary.log")
  messages_play "$run" "$decides"
  say "$messages_consumers consumers heard of $messages_count notes each: ${messages_all[$run]} updates delivered, ${messages_lost[$run]} lost," \
    "${messages_primary[$run]} of them read on the primary."
}

# Starts the consumers, then the publisher, and adds up what they say.
messages_play() {
  local run=$1 decides=$2 number pids=() replicas=() name
  for name in "${messages_replicas[@]}"; do
    replicas+=("$name=$(messages_conninfo "$name")")
  done
  for ((number = 1; number <= messages_consumers; number++)); do
    messages_start "$run.$number" consume "$(messages_conninfo primary)" "$decides" "$messages_count" "${replicas[@]}"
    pids+=("$rpin_pid")
  done
  wait_for primary "count(*) = $messages_consumers FROM pg_stat_activity WHERE query = 'LISTEN note'"
  messages_start "$run.publisher" publish "$(messages_conninfo primary)" "$messages_count"
  pids+=("$rpin_pid")
  for number in "${pids[@]}"; do
    wait "$number" || rpin_die "a program of examples/notes failed: $(cat "$RPIN_WORK/$run".*)"
  done
  messages_all[$run]=$(messages_sum "$run" delivered)
  messages_lost[$run]=$(messages_sum "$run" lost)
  messages_primary[$run]=$(messages_sum "$run" primary)
}

messages_conninfo() {
  printf 'host=%s port=%s user=postgres dbname=postgres' "$demo_sockets" "${demo_port[$1]}"
}

# messages_start log arguments: -> rpin_pid
messages_start() {
  local log=$RPIN_WORK/$1
  shift
  rpin_start_as_postgres /usr/bin/python3 "$RPIN_WORK/src/examples/notes/notes.py" "$@" >"$log" 2>&1
}

# messages_sum run word
messages_sum() {
  sed -nE "s/.*\\b$2=([0-9]+).*/\\1/p" "$RPIN_WORK/$1".* | awk '{ sum += $1 } END { print sum + 0 }'
}

messages_show_log() {
  local line
  say '' "The primary's log has one line for the first of each burst, with the request's identifier:"
  tail -c "+$((messages_log + 1))" "$RPIN_WORK/primary.log" >"$RPIN_WORK/lines"
  mapfile -t messages_lines < <(sed -nE 's/.*(decision=.*)/\1/p' "$RPIN_WORK/lines")
  for line in "${messages_lines[@]:0:3}"; do
    say "  $line"
  done
  say '' 'And the counters:'
  messages_show_counters
}

messages_show_counters() {
  show_table primary 'SELECT * FROM replica_pin.stat_decisions WHERE enforced + not_enforced > 0'
}

messages_compare() {
  local all=$((messages_count * messages_consumers)) id
  say '' 'The counters tell what run B sends to the primary, before anything is sent there:'
  messages_show_counters
  ask primary "SELECT not_enforced FROM replica_pin.stat_decisions WHERE reason = 'replicas_behind'"
  check 'A, after: updates lost' "$all of $all" "${messages_lost[A]} of $all"
  check 'B, before: updates lost' "0 of $all" "${messages_lost[B]} of $all"
  check 'B: delivered' "$all of $all" "${messages_all[B]} of $all"
  check 'C, not enforced: lost, as in A' "${messages_lost[A]}" "${messages_lost[C]}"
  check 'C: counted, of what B read on the primary' "${messages_primary[B]}" "$answer"
  id=$(sed -nE 's/.*correlation_id="([^"]*)".*/\1/p' <<<"${messages_lines[0]:-}")
  check 'B: the log names the first request' request-1 "$id"
}
