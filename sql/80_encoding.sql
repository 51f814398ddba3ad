--
-- Databases of other encodings: keys are the server's, whatever the database.
--
SELECT current_database() AS here \gset
CREATE DATABASE regress_rpin_latin1 TEMPLATE template0 ENCODING LATIN1 LOCALE 'C';
CREATE DATABASE regress_rpin_ascii TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C';
SELECT replica_pin.pin('user:1') AS pinned \gset

\c regress_rpin_latin1
SET client_encoding = UTF8;
CREATE EXTENSION replica_pin;
SELECT required = :'pinned' AS same_key FROM replica_pin.route('user:1');
SELECT replica_pin.pin('utilisateur:é') AS token \gset
SELECT required = :'token' AS same_key FROM replica_pin.route('utilisateur:é');
SELECT reason FROM replica_pin.route(token => 'é');
SELECT replica_pin.has_replayed(:'token'), replica_pin.has_replayed('é');

\c regress_rpin_ascii
CREATE EXTENSION replica_pin;
SELECT required = :'pinned' AS same_key FROM replica_pin.route('user:1');
SELECT replica_pin.pin(E'\xE9\xFF') AS token \gset
SELECT required = :'token' AS same_key FROM replica_pin.route(E'\xE9\xFF');
SELECT reason FROM replica_pin.route(token => E'\xE9\xFF');

\c :here
DROP DATABASE regress_rpin_latin1;
DROP DATABASE regress_rpin_ascii;
