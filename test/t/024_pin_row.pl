# The trigger function pin_row(), on tables as object mappers make them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Utils;
use RpinTest;
use Test::More;

my ($primary, $replica) = cluster(replicas => 1);
my $reader = session($primary);

# Every replica is behind from here on: a key is pinned if and only if a commit
# after this pinned it.
pause_replay($replica);
sub pinned
{
	my (@keys) = @_;
	return join ' ', grep { is_pinned($reader, $_) } @keys;
}

# --- a table in the manner of Rails: bigint keys, a foreign key that cascades -

ask($primary, <<'END');
CREATE TABLE users (id bigserial PRIMARY KEY, name text NOT NULL);
CREATE TABLE articles (
  id bigserial PRIMARY KEY,
  title text,
  user_id bigint REFERENCES users ON DELETE CASCADE,
  created_at timestamp(6) NOT NULL DEFAULT now(),
  updated_at timestamp(6) NOT NULL DEFAULT now());
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON articles FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('article', 'id', 'user', 'user_id');
INSERT INTO users (name) SELECT 'u' FROM generate_series(1, 9);
END

ask($primary, "INSERT INTO articles (title, user_id) VALUES ('a', 1)");
is(pinned('article:1', 'user:1', 'user:2'), 'article:1 user:1', 'INSERT');
ask($primary, "INSERT INTO articles (title, user_id) VALUES ('b', NULL)");
is(pinned('article:2', 'user:', 'user:NULL'), 'article:2', 'a NULL gives no key');
ask($primary, 'UPDATE articles SET user_id = 3 WHERE id = 1');
is(pinned('user:3'), 'user:3', 'UPDATE pins the new value');
ask($primary, 'INSERT INTO articles (id, user_id) VALUES (100, 4)');
my $before = route($reader, 'user:4')->{required};
ask($primary, 'UPDATE articles SET user_id = 5 WHERE id = 100');
cmp_ok(route($reader, 'user:4')->{required}, 'gt', $before, 'and the old one');
$before = route($reader, 'article:100')->{required};
ask($primary, 'DELETE FROM articles WHERE id = 100');
cmp_ok(route($reader, 'article:100')->{required}, 'gt', $before, 'DELETE pins');
ask($primary, 'INSERT INTO articles (id, user_id) VALUES (101, 6)');
$before = route($reader, 'article:101')->{required};
ask($primary, 'DELETE FROM users WHERE id = 6');
cmp_ok(route($reader, 'article:101')->{required}, 'gt', $before, 'a DELETE that cascades pins');

my $rolled_back = route($reader, 'article:1')->{required};
ask($primary, 'BEGIN; UPDATE articles SET title = title WHERE id = 1; ROLLBACK');
is(route($reader, 'article:1')->{required}, $rolled_back, 'what rolls back does not pin');

ask($primary, "INSERT INTO articles (id, title) VALUES (102, 'x') ON CONFLICT (id) DO UPDATE SET title = 'y'");
is(pinned('article:102'), 'article:102', 'ON CONFLICT DO UPDATE that inserts');
$before = route($reader, 'article:102')->{required};
ask($primary, "INSERT INTO articles (id, title) VALUES (102, 'x') ON CONFLICT (id) DO UPDATE SET title = 'y'");
cmp_ok(route($reader, 'article:102')->{required}, 'gt', $before, 'and one that updates');
ask($primary, <<'END');
MERGE INTO articles a USING (VALUES (102, 'm'), (103, 'n')) v (id, title) ON a.id = v.id
WHEN MATCHED THEN UPDATE SET title = v.title
WHEN NOT MATCHED THEN INSERT (id, title) VALUES (v.id, v.title)
END
is(pinned('article:103'), 'article:103', 'MERGE');

# --- a table in the manner of Django: uuid, identity, quoted names -----------

ask($primary, <<'END');
CREATE TABLE "app_note" (
  "id" uuid NOT NULL PRIMARY KEY,
  "Owner Name" varchar(150) NOT NULL,
  "amount" numeric(8, 2),
  "day" date);
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON app_note FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('note', 'id', 'owner', 'Owner Name', 'amount', 'amount', 'day', 'day');
INSERT INTO app_note VALUES ('5f0c54a4-9d25-4bd2-9f5b-9b7e3f3c1c11', 'Anna Ö', 1.50, '2026-11-30');
END
is( pinned('note:5f0c54a4-9d25-4bd2-9f5b-9b7e3f3c1c11', 'owner:Anna Ö', 'amount:1.50', 'day:2026-11-30'),
	'note:5f0c54a4-9d25-4bd2-9f5b-9b7e3f3c1c11 owner:Anna Ö amount:1.50 day:2026-11-30',
	'values of any type, by their output function');

# --- partitions with columns in another order, inheritance, dropped columns --

ask($primary, <<'END');
CREATE TABLE event (gone integer, id integer, tenant text) PARTITION BY LIST (tenant);
ALTER TABLE event DROP COLUMN gone;
CREATE TABLE event_a PARTITION OF event FOR VALUES IN ('a');
CREATE TABLE event_b (tenant text, junk integer, id integer);
ALTER TABLE event_b DROP COLUMN junk;
ALTER TABLE event ATTACH PARTITION event_b FOR VALUES IN ('b');
CREATE TRIGGER pin AFTER INSERT OR UPDATE OR DELETE ON event FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('event', 'id', 'tenant', 'tenant');
INSERT INTO event VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, 'b');
END
is(pinned(map { "event:$_" } 1 .. 5), 'event:1 event:2 event:3 event:4', 'partitions');
is(pinned('tenant:a', 'tenant:b', 'tenant:1'), 'tenant:a tenant:b', 'each by its own column numbers');
$before = route($reader, 'event:1')->{required};
ask($primary, "UPDATE event SET tenant = 'b' WHERE id = 1");
cmp_ok(route($reader, 'event:1')->{required}, 'gt', $before, 'a row that moves to another partition');

ask($primary, <<'END');
CREATE TABLE child () INHERITS (articles);
CREATE TRIGGER pin AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('child', 'id');
INSERT INTO child (id) VALUES (7);
ALTER TABLE app_note RENAME COLUMN amount TO price;
END
is(pinned('child:7'), 'child:7', 'inherited columns');
like(
	error_of($primary, "INSERT INTO app_note VALUES ('5f0c54a4-9d25-4bd2-9f5b-9b7e3f3c1c12', 'x')"),
	qr/^42703: column "amount" of relation "app_note" does not exist/, 'a renamed column is a clear error');
ask($primary, <<'END');
DROP TRIGGER pin ON app_note;
CREATE TRIGGER pin AFTER INSERT ON app_note FOR EACH ROW
  EXECUTE FUNCTION replica_pin.pin_row('price', 'price');
INSERT INTO app_note VALUES ('5f0c54a4-9d25-4bd2-9f5b-9b7e3f3c1c12', 'x', 3);
END
is(pinned('price:3.00'), 'price:3.00', 'until the trigger is created anew');

# --- bulk: more keys than are remembered one by one pin every key ------------

resume_replay($replica);
ok(poll_until(sub { !is_pinned($reader, 'article:1') }), 'all is let go');
pause_replay($replica);
is(pinned('bystander'), '', 'a bystander is free');
my $rows = join '', map { "$_\ttitle\n" } 200_001 .. 300_000;
my $file = PostgreSQL::Test::Utils::tempdir() . '/rows';
append_to_file($file, $rows);
ask($primary, "COPY articles (id, title) FROM '$file'");
is(pinned('article:200001', 'article:300000'), 'article:200001 article:300000', 'COPY of 100,000 rows pins');
is(pinned('bystander'), 'bystander', 'and pins every key, as is documented');
resume_replay($replica);
ok(poll_until(sub { !is_pinned($reader, 'bystander') && !is_pinned($reader, 'article:300000') }), 'until it is replayed');
pause_replay($replica);
ask($primary, 'UPDATE articles SET title = title WHERE id BETWEEN 200001 AND 200500');
is(pinned('bystander', 'article:200500'), 'article:200500', 'a few hundred keys are remembered one by one');

# --- when it does not run ----------------------------------------------------

ask($primary, 'SET session_replication_role = replica; INSERT INTO articles (id) VALUES (400)');
is(pinned('article:400'), '', 'session_replication_role = replica silences it, as it does any trigger');
ask($primary, 'ALTER TABLE articles ENABLE ALWAYS TRIGGER pin');
ask($primary, 'SET session_replication_role = replica; INSERT INTO articles (id) VALUES (401)');
is(pinned('article:401'), 'article:401', 'unless it is enabled ALWAYS');
ask($primary, 'SET replica_pin.capture = off; INSERT INTO articles (id) VALUES (402)');
is(pinned('article:402'), 'article:402', 'capture = off does not silence an explicit pin');

# --- wrong triggers are clear errors, and lose nothing -----------------------

my %wrong = (
	"AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row()" => qr/^22023: .*pairs of arguments/,
	"AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('a')" => qr/^22023: .*pairs of arguments/,
	"AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('a', 'none')" => qr/^42703: column "none"/,
	"AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('a', 'ctid')" => qr/^42703: column "ctid"/,
	"BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION replica_pin.pin_row('a', 'id')" => qr/^39P01: .*must be fired AFTER, FOR EACH ROW/,
	"AFTER INSERT ON wrong FOR EACH STATEMENT EXECUTE FUNCTION replica_pin.pin_row('a', 'id')" => qr/^39P01: .*must be fired AFTER, FOR EACH ROW/,
);
ask($primary, 'CREATE TABLE wrong (id integer)');
for my $definition (sort keys %wrong)
{
	ask($primary, "CREATE TRIGGER wrong $definition");
	like(error_of($primary, 'INSERT INTO wrong VALUES (1)'), $wrong{$definition}, $definition);
	ask($primary, 'DROP TRIGGER wrong ON wrong');
}
ask($primary, "CREATE TRIGGER wrong AFTER TRUNCATE ON wrong EXECUTE FUNCTION replica_pin.pin_row('a', 'id')");
like(error_of($primary, 'TRUNCATE wrong'), qr/^39P01: .*must be fired AFTER, FOR EACH ROW/, 'TRUNCATE');
like(error_of($primary, 'SELECT replica_pin.pin_row()'), qr/^0A000|^39P01/, 'a call');
is(ask($primary, 'SELECT count(*) FROM wrong'), 0, 'nothing was written');
is(ask($primary, 'SELECT pending_keys FROM replica_pin.status'), 0, 'nothing is pending');

done_testing();
