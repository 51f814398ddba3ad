# shellcheck shell=bash
#
# The demo "after-create": a user creates a note and opens it. Two readers serve
# the page, from the same replicas at the same time. One forgets the write when
# ONE replica has replayed it; the other asks replica_pin.
#
# What is not set here is set by demo.sh.
# shellcheck disable=SC2154

after_create_replicas=(fresh delayed paused)
after_create_read='SELECT title FROM note WHERE id = 24'

demo_after_create() {
  after_create_servers
  after_create_wait
  after_create_write
  after_create_reads
  after_create_token
  after_create_release
}

# --- the story ---------------------------------------------------------------

after_create_servers() {
  step 'A primary and three streaming replicas'
  demo_primary "${after_create_replicas[@]}"
  say 'The primary has two settings that matter, and a table:' \
    "  shared_preload_libraries = 'replica_pin'" \
    "  replica_pin.replicas = '${demo_entries//, /$',\n                           '}'" ''
  show primary 'CREATE EXTENSION replica_pin'
  show primary 'CREATE TABLE note (id int PRIMARY KEY, author int, title text)'
  demo_replica fresh
  demo_replica delayed "recovery_min_apply_delay = '60s'"
  demo_replica paused
  wait_for primary 'count(*) = 3 AND bool_and(eligible) FROM replica_pin.replicas'
  say '' 'A background worker on the primary samples what each replica has replayed:'
  after_create_show_replicas
  say '' "No write of user 42 is known, so the user's session key is not pinned:"
  wait_for primary "NOT replica_pin.is_pinned('user:42')"
  show primary "SELECT replica_pin.is_pinned('user:42')"
  check "before the write: is_pinned('user:42')" f "$answer"
}

after_create_wait() {
  local replica lifetime
  step 'The replicas are held back'
  say '"delayed" applies every commit a minute late:'
  show delayed 'SHOW recovery_min_apply_delay'
  say '"paused" stands still until it is told to go on. "fresh" is held too, for a moment:'
  for replica in paused fresh; do
    show "$replica" 'SELECT pg_wal_replay_pause()'
    wait_for "$replica" "pg_get_wal_replay_pause_state() = 'paused'"
  done
  ask primary 'SHOW replica_pin.sample_lifetime'
  lifetime=$answer
  say '' 'Both readers read over connections that stay open, as a pool keeps them. The promise' \
    "of route() is for those older than replica_pin.sample_lifetime ($lifetime): waiting for that ..."
  for replica in "${after_create_replicas[@]}"; do
    wait_for "$replica" \
      "now() - backend_start > '$lifetime' FROM pg_stat_activity WHERE pid = pg_backend_pid()"
  done
}

# -> token; left_lsn is what the left reader's load balancer remembers
after_create_write() {
  step 'User 42 creates note 24'
  show primary "INSERT INTO note VALUES (24, 42, 'hello')"
  say '' 'It is committed. The left reader remembers the WAL position, as load balancers do:'
  show primary 'SELECT pg_current_wal_lsn()'
  left_lsn=$answer
  say '' 'The right reader pins the session key. The answer is a token: cluster, timeline, position.'
  show primary "SELECT replica_pin.pin('user:42')"
  token=$answer
  show primary "SELECT replica_pin.is_pinned('user:42')"
  check "after the write: is_pinned('user:42')" t "$answer"
}

after_create_reads() {
  local number
  left_lost=0 left_next=0 right_lost=0 right_safe=0
  step 'Twelve times, both open the note'
  say 'Left: reads on the primary until ONE replica has replayed the write. Then it forgets the' \
    '      write, and reads go to all replicas in turn.' \
    "Right: reads where SELECT * FROM replica_pin.route('user:42') says." ''
  after_create_head
  say 'No replica has replayed the write.'
  for number in 1 2 3; do
    after_create_both "$number"
  done
  check 'nobody has replayed: reason of route()' replicas_behind "$reason"

  ask fresh 'SELECT pg_wal_replay_resume()'
  wait_for primary "replica IS NOT NULL FROM replica_pin.route('user:42')"
  say "\"fresh\" was resumed, and route() named it $milliseconds ms later. The others stay behind."
  for number in 4 5 6 7 8 9 10 11 12; do
    after_create_both "$number"
  done
  say '' "404s on the left: $left_lost of 12. On the right: $right_lost of 12." \
    'The key is pinned as long as any replica is behind:'
  show primary "SELECT replica_pin.is_pinned('user:42')"
  check "one has replayed: is_pinned('user:42')" t "$answer"
  after_create_show_replicas
  check 'one has replayed: reason of route()' replica_caught_up "$reason"
  check 'one has replayed: safe set of route()' '{fresh}' "$safe_set"
  check 'left, forgets when one has caught up: 404s' '6 of 12' "$left_lost of 12"
  check 'right, follows route(): 404s' '0 of 12' "$right_lost of 12"
  check 'right, on the primary or in the safe set' '12 of 12' "$right_safe of 12"
}

after_create_token() {
  local statements="BEGIN; CALL replica_pin.require('$token'); $after_create_read; COMMIT"
  step 'The same with the token, without asking the primary'
  say 'The token travels in a cookie. A replica that is behind refuses, and the read is not run:'
  after_create_require paused "$statements"
  check 'require(token) and read, on "paused"' RP001 "$seen"
  after_create_require fresh "$statements"
  check 'require(token) and read, on "fresh"' hello "$seen"
}

after_create_release() {
  step 'The replicas catch up, and the key lets go'
  show paused 'SELECT pg_wal_replay_resume()'
  wait_for primary "replicas = '{fresh,paused}' FROM replica_pin.route('user:42')"
  say "route() named \"paused\" too, $milliseconds ms later. Still pinned, because of \"delayed\":"
  show primary "SELECT replica_pin.is_pinned('user:42')"
  check "two have replayed: is_pinned('user:42')" t "$answer"
  say ''
  show delayed 'ALTER SYSTEM RESET recovery_min_apply_delay'
  show delayed 'SELECT pg_reload_conf()'
  wait_for primary "NOT replica_pin.is_pinned('user:42')"
  say "Not pinned any more, $milliseconds ms later:"
  show primary "SELECT replica_pin.is_pinned('user:42')"
  check "all have replayed: is_pinned('user:42')" f "$answer"
  show_table primary "SELECT * FROM replica_pin.route('user:42')"
  after_create_route
  check 'all have replayed: reason of route()' in_sync "$reason"
  check 'all have replayed: safe set of route()' '{fresh,delayed,paused}' "$safe_set"
}

# --- the readers -------------------------------------------------------------

after_create_head() {
  printf '   %4s  %-25s  %s\n' \
    '' 'LEFT: one has caught up' "RIGHT: route('user:42')" \
    read 'reads on    answer' 'reads on    answer        reason             replicas'
}

# after_create_both number: one read of each reader, side by side.
after_create_both() {
  after_create_left
  printf '   %4d  ' "$1"
  after_create_page "$left_node"
  left_lost=$((left_lost + lost))
  printf '  '
  after_create_route
  after_create_page "${replica:-primary}"
  right_lost=$((right_lost + lost))
  printf ' %-18s %s\n' "$reason" "$safe_set"
  case ,${safe_set//[\{\}]/}, in
    *",${replica:-no replica},"*) right_safe=$((right_safe + 1)) ;;
    *) [ -n "$replica" ] || right_safe=$((right_safe + 1)) ;;
  esac
}

# -> left_node
after_create_left() {
  local candidate
  left_node=primary
  if [ -z "$left_lsn" ]; then
    left_node=${after_create_replicas[left_next]}
    left_next=$(((left_next + 1) % ${#after_create_replicas[@]}))
    return 0
  fi
  for candidate in "${after_create_replicas[@]}"; do
    ask "$candidate" "SELECT pg_last_wal_replay_lsn() >= '$left_lsn'"
    if [ "$answer" = t ]; then
      left_lsn=
      after_create_left
      return 0
    fi
  done
}

# -> replica, reason, safe_set
after_create_route() {
  ask primary "SELECT * FROM replica_pin.route('user:42')"
  IFS='|' read -r replica reason safe_set _ <<<"$answer"
}

# after_create_page node: opens the note there. -> lost (1 for a 404)
after_create_page() {
  local colour=$green page='200 OK'
  lost=0
  ask "$1" "$after_create_read"
  if [ "$answer" != hello ]; then
    colour=$red page='404 Not Found' lost=1
  fi
  printf '%-10s  %s%-13s%s' "$1" "$colour" "$page" "$plain"
}

# after_create_require node statements: sent as one message. -> seen
after_create_require() {
  local said
  demo_print "$1" "$2"
  try "$1" "${2//; /\\; }"
  seen=$answer said=$answer
  if [ "$sqlstate" != 00000 ]; then
    seen=$sqlstate said=${answer/ERROR:  /ERROR:  $sqlstate: }
    ask "$1" ROLLBACK
  fi
  indented <<<"$said"
}

after_create_show_replicas() {
  show_table primary \
    'SELECT name, state, replay_lsn, lag_bytes, lag FROM replica_pin.replicas'
}
