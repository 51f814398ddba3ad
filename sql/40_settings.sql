--
-- The settings: what they are, what they refuse, and who may change them.
--
\pset null (null)
SELECT name, setting, unit, vartype, context, min_val, max_val, boot_val
FROM pg_settings
WHERE name LIKE 'replica\_pin.%'
ORDER BY name COLLATE "C";
SELECT name, short_desc, extra_desc
FROM pg_settings
WHERE name LIKE 'replica\_pin.%'
ORDER BY name COLLATE "C";
SHOW replica_pin.sample_interval;
SHOW replica_pin.min_sample_interval;
SHOW replica_pin.sample_timeout;
SHOW replica_pin.sample_lifetime;
SHOW replica_pin.capture;
SHOW replica_pin.report_commit_token;
SHOW replica_pin.location_names;
SHOW replica_pin.max_envelope_size;
SHOW replica_pin.enforce_percent;
SHOW replica_pin.log_decisions;

-- A misspelt name is noticed.  What PostgreSQL itself says differs between its
-- versions.
\set VERBOSITY sqlstate
SET replica_pin.sample_intervall = 1;
SET replica_pin.replica = 'r1';

--
-- Values out of their range.
--
ALTER SYSTEM SET replica_pin.sample_interval = 9;
ALTER SYSTEM SET replica_pin.sample_interval = 60001;
ALTER SYSTEM SET replica_pin.sample_interval = '2min';
ALTER SYSTEM SET replica_pin.sample_interval = 'often';
ALTER SYSTEM SET replica_pin.sample_interval = '1MB';
ALTER SYSTEM SET replica_pin.min_sample_interval = 0;
ALTER SYSTEM SET replica_pin.min_sample_interval = 10001;
ALTER SYSTEM SET replica_pin.sample_timeout = 9;
ALTER SYSTEM SET replica_pin.sample_timeout = 60001;
ALTER SYSTEM SET replica_pin.sample_lifetime = 99;
ALTER SYSTEM SET replica_pin.sample_lifetime = 600001;
ALTER SYSTEM SET replica_pin.max_session_keys = 2;
ALTER SYSTEM SET replica_pin.max_session_keys = 1000000001;
ALTER SYSTEM SET replica_pin.max_replicas = 0;
ALTER SYSTEM SET replica_pin.max_replicas = 65;
SET replica_pin.capture = 'sometimes';
SET replica_pin.report_commit_token = 2;
SET replica_pin.enforce_percent = -1;
SET replica_pin.enforce_percent = 101;
SET replica_pin.max_envelope_size = 63;
SET replica_pin.max_envelope_size = '1GB';
SET replica_pin.log_decisions = 'some';
\set VERBOSITY default

--
-- Names of this cluster in messages.
--
ALTER SYSTEM SET replica_pin.location_names = 'main';
ALTER SYSTEM SET replica_pin.location_names = 'main, ci,sec-2.eu:west_1';
\echo :SQLSTATE
ALTER SYSTEM RESET replica_pin.location_names;
ALTER SYSTEM SET replica_pin.location_names = '';
ALTER SYSTEM SET replica_pin.location_names = ' , ';
ALTER SYSTEM SET replica_pin.location_names = 'main, "ci"';
ALTER SYSTEM SET replica_pin.location_names = 'main, größe';
SELECT 'main, ' || repeat('n', 64) AS list \gset
ALTER SYSTEM SET replica_pin.location_names = :'list';
SELECT string_agg('n' || n, ',') AS list FROM generate_series(1, 17) n \gset
ALTER SYSTEM SET replica_pin.location_names = :'list';
\echo :SQLSTATE

--
-- The list of replicas: what it may say.
--
ALTER SYSTEM SET replica_pin.replicas = '';
ALTER SYSTEM SET replica_pin.replicas = '   ';
ALTER SYSTEM SET replica_pin.replicas = 'db1';
ALTER SYSTEM SET replica_pin.replicas = 'db1.example.com:5433';
ALTER SYSTEM SET replica_pin.replicas = '10.0.0.11';
ALTER SYSTEM SET replica_pin.replicas = '10.0.0.11:1, 10.0.0.11:65535';
ALTER SYSTEM SET replica_pin.replicas = '[2001:db8::11], [2001:db8::11]:5433';
ALTER SYSTEM SET replica_pin.replicas = '/var/run/postgresql, /var/run/postgresql:5433';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11,r2=10.0.0.11:5433,r3=[::1],r4=/tmp:5434';
ALTER SYSTEM SET replica_pin.replicas = E'\t r1 =\t10.0.0.11 ,  r2 = 10.0.0.12 ';
-- one address may have two names
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11,r2=10.0.0.11';
-- as many as there may be
SELECT string_agg('10.0.0.' || n, ',') AS list FROM generate_series(1, 32) n \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
SELECT 'n=' || repeat('h', 255) AS list \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
SELECT repeat('n', 127) || '=h' AS list \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
\echo :SQLSTATE
ALTER SYSTEM RESET replica_pin.replicas;

-- What it may not say, and where it says so.
ALTER SYSTEM SET replica_pin.replicas = ',';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11,';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11,,r3=10.0.0.13';
ALTER SYSTEM SET replica_pin.replicas = 'r1=';
ALTER SYSTEM SET replica_pin.replicas = 'r1=:5432';
ALTER SYSTEM SET replica_pin.replicas = 'r1=[]:5432';
ALTER SYSTEM SET replica_pin.replicas = '=10.0.0.11';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:0';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:65536';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:99999999999999999999';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:postgres';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r2=10.0.0.12:-1';
ALTER SYSTEM SET replica_pin.replicas = 'r1=2001:db8::11';
ALTER SYSTEM SET replica_pin.replicas = 'r1=[2001:db8::11';
ALTER SYSTEM SET replica_pin.replicas = 'r1=[2001:db8::11]5432';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11, r1=10.0.0.12';
ALTER SYSTEM SET replica_pin.replicas = '10.0.0.11, r2=10.0.0.12, 10.0.0.11';
ALTER SYSTEM SET replica_pin.replicas = 'r1=r2=10.0.0.12';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11 r2=10.0.0.12';
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11; r2=10.0.0.12';
ALTER SYSTEM SET replica_pin.replicas = 'first one=10.0.0.11';
ALTER SYSTEM SET replica_pin.replicas = 'r1="10.0.0.11"';
ALTER SYSTEM SET replica_pin.replicas = 'r1=C:\pgsocket';
ALTER SYSTEM SET replica_pin.replicas = 'é=10.0.0.11';
ALTER SYSTEM SET replica_pin.replicas = 'host=10.0.0.11 port=5432';
ALTER SYSTEM SET replica_pin.replicas = 'postgresql://10.0.0.11/postgres';
SELECT string_agg('10.0.0.' || n, ',') AS list FROM generate_series(1, 33) n \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
SELECT 'n=' || repeat('h', 256) AS list \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
SELECT repeat('n', 128) || '=h' AS list \gset
ALTER SYSTEM SET replica_pin.replicas = :'list';
\echo :SQLSTATE

--
-- The libpq options of the sampler.
--
ALTER SYSTEM SET replica_pin.conninfo = '';
ALTER SYSTEM SET replica_pin.conninfo = 'user=sampler dbname=postgres passfile=/etc/sampler.pgpass';
ALTER SYSTEM SET replica_pin.conninfo = 'user=''a sampler'' sslmode=verify-full sslrootcert=/etc/ca.pem';
ALTER SYSTEM SET replica_pin.conninfo = 'application_name=sampler keepalives_idle=10 gssencmode=prefer';
ALTER SYSTEM SET replica_pin.conninfo = 'postgresql:///postgres?user=sampler';
\echo :SQLSTATE
ALTER SYSTEM RESET replica_pin.conninfo;

-- A refusal never shows the value: it may hold a secret.
ALTER SYSTEM SET replica_pin.conninfo = 'user=sampler password=hunter2';
ALTER SYSTEM SET replica_pin.conninfo = 'user=sampler sslpassword=hunter2';
ALTER SYSTEM SET replica_pin.conninfo = 'postgresql://sampler:hunter2@/postgres';
ALTER SYSTEM SET replica_pin.conninfo = 'user=sampler password = hunter2 x';
ALTER SYSTEM SET replica_pin.conninfo = 'user=''hunter2';
ALTER SYSTEM SET replica_pin.conninfo = 'hunter2=1';
ALTER SYSTEM SET replica_pin.conninfo = 'hunter2';
-- The address is the list's, the rest is the sampler's.
ALTER SYSTEM SET replica_pin.conninfo = 'host=10.0.0.11';
ALTER SYSTEM SET replica_pin.conninfo = 'hostaddr=10.0.0.11';
ALTER SYSTEM SET replica_pin.conninfo = 'port=5432';
ALTER SYSTEM SET replica_pin.conninfo = 'options=-csearch_path=public';
ALTER SYSTEM SET replica_pin.conninfo = 'connect_timeout=10';
ALTER SYSTEM SET replica_pin.conninfo = 'client_encoding=UTF8';
ALTER SYSTEM SET replica_pin.conninfo = 'replication=database';
ALTER SYSTEM SET replica_pin.conninfo = 'target_session_attrs=primary';
ALTER SYSTEM SET replica_pin.conninfo = 'service=primary';
\echo :SQLSTATE

-- None of that reached the file.
SELECT name, setting FROM pg_file_settings WHERE name LIKE 'replica\_pin.%';

--
-- Who may set them.  What the server does, a superuser sets for the server.
--
SET replica_pin.replicas = 'r1=10.0.0.11';
SET replica_pin.conninfo = 'user=sampler';
SET replica_pin.sample_interval = 100;
SET replica_pin.min_sample_interval = 100;
SET replica_pin.sample_timeout = 100;
SET replica_pin.sample_lifetime = 100;
SET replica_pin.location_names = 'ci';
SET replica_pin.max_session_keys = 100;
SET replica_pin.max_replicas = 10;
\echo :SQLSTATE
ALTER ROLE regress_rpin_app SET replica_pin.replicas = 'r1=10.0.0.11';
SET ROLE regress_rpin_app;
ALTER SYSTEM SET replica_pin.replicas = 'r1=10.0.0.11';
ALTER SYSTEM SET replica_pin.sample_interval = 100;
SET replica_pin.enforce_percent = 0;
SET replica_pin.log_decisions = 'all';
SET replica_pin.max_envelope_size = '64MB';
\echo :SQLSTATE

-- Addresses and options are not everybody's to see; the rest is.
SELECT code FROM test.outcome('SHOW replica_pin.replicas');
SELECT code FROM test.outcome('SHOW replica_pin.conninfo');
SELECT name FROM pg_settings WHERE name LIKE 'replica\_pin.%'
ORDER BY name COLLATE "C";

-- What a session does is everybody's to set, for any span.
BEGIN;
SET LOCAL replica_pin.session_key = 'user:1';
SHOW replica_pin.session_key;
COMMIT;
SELECT set_config('replica_pin.session_key', 'user:2', false);
SET replica_pin.correlation_id = 'request 17';
SET replica_pin.capture = off;
SET replica_pin.report_commit_token = on;
SELECT name, setting, source FROM pg_settings
WHERE name LIKE 'replica\_pin.%' AND context = 'user'
ORDER BY name COLLATE "C";
RESET ROLE;
RESET ALL;
ALTER ROLE regress_rpin_app SET replica_pin.capture = off;
ALTER ROLE regress_rpin_app RESET ALL;

--
-- A file with a list that cannot be read: the old list stays in force, the rest
-- of the file applies.
--
SELECT current_setting('data_directory') || '/postgresql.auto.conf' AS file \gset
ALTER SYSTEM SET replica_pin.replicas = 'r1=127.0.0.1:1, r2=127.0.0.1:2';
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT count(*) = 2 FROM replica_pin.replicas) $$);
COPY (VALUES ('replica_pin.replicas = ''r1=127.0.0.1:1, r2='''),
             ('replica_pin.conninfo = ''password=hunter2'''),
             ('replica_pin.sample_interval = ''5 s''')) TO :'file';
SELECT name, applied, error FROM pg_file_settings
WHERE name LIKE 'replica\_pin.%' ORDER BY seqno;
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings <> '{}' FROM replica_pin.status) $$);
SELECT name, host, port FROM replica_pin.replicas;
\c -
SHOW replica_pin.replicas;
SHOW replica_pin.conninfo;
SHOW replica_pin.sample_interval;

-- An empty file: the defaults.
ALTER SYSTEM RESET ALL;
SELECT pg_reload_conf();
CALL test.wait_for($$ (SELECT clamped_settings = '{}' AND replicas = 0
    FROM replica_pin.status) $$);
