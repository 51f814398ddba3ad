// Token mode with pgx (version 4): the read is asked of the replica itself, in one
// round trip; the primary is not needed.
//
// usage: pgx_example write PRIMARY ID            prints the token
//
//	pgx_example read TOKEN ID PRIMARY REPLICA...
//
// PRIMARY and REPLICA are connection strings. A read prints where it was served,
// whether the row was there, and the token to carry on with.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

const waitMs = 50
const readNote = "SELECT id FROM note WHERE id = $1"

var ctx = context.Background()

func connect(address string) *pgx.Conn {
	conn, err := pgx.Connect(ctx, address)
	check(err)
	return conn
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func write(primary string, note int) string {
	conn := connect(primary)
	defer conn.Close(ctx)
	check(conn.BeginFunc(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SET LOCAL replica_pin.report_commit_token = on")
		check(err)
		_, err = tx.Exec(ctx, "INSERT INTO note (id) VALUES ($1)", note)
		return err
	}))
	return conn.PgConn().ParameterStatus("replica_pin.commit_token")
}

// The read, in one batch with the proof: one Sync, so one transaction, and when
// require() fails the server skips the read. The first time on a connection pgx
// prepares the two statements before; from then on it is one round trip.
func readBehind(replica *pgx.Conn, token string, note int) (int, error) {
	batch := &pgx.Batch{}
	batch.Queue("CALL replica_pin.require($1, $2)", token, waitMs)
	batch.Queue(readNote, note)
	results := replica.SendBatch(ctx, batch)
	defer results.Close()

	if _, err := results.Exec(); err != nil {
		return 0, err
	}
	rows, err := results.Query()
	if err != nil {
		return 0, err
	}
	return count(rows)
}

func count(rows pgx.Rows) (int, error) {
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// What to carry instead of a token that a replica cannot compare. No replica can
// ever have a write that a failover lost (required is NULL): begin anew.
func renew(primary, token string) string {
	conn := connect(primary)
	defer conn.Close(ctx)
	check(conn.QueryRow(ctx, "SELECT coalesce(required, replica_pin.current_token())"+
		" FROM replica_pin.route(token => $1)", token).Scan(&token))
	return token
}

// The rows, where they were read, and the token to carry. RP001: the next replica,
// then the primary, and the token stays. RP002: the primary renews it, once.
func read(replicas []*pgx.Conn, primary, token string, note int) (int, string, string) {
	renewed := false
	for i := 0; i < len(replicas); {
		n, err := readBehind(replicas[i], token, note)
		if err == nil {
			return n, fmt.Sprintf("r%d", i+1), token
		}
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || (refusal.Code != "RP001" && refusal.Code != "RP002") {
			log.Fatal(err)
		}
		if refusal.Code == "RP001" || renewed {
			i++
			continue
		}
		token, renewed = renew(primary, token), true
	}
	conn := connect(primary)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, readNote, note)
	check(err)
	n, err := count(rows)
	check(err)
	return n, "primary", token
}

func main() {
	arguments := os.Args[1:]
	if arguments[0] == "write" {
		note, err := strconv.Atoi(arguments[2])
		check(err)
		fmt.Println(write(arguments[1], note))
		return
	}
	note, err := strconv.Atoi(arguments[2])
	check(err)
	var replicas []*pgx.Conn
	for _, address := range arguments[4:] {
		replicas = append(replicas, connect(address))
	}
	n, where, token := read(replicas, arguments[3], arguments[1], note)
	fmt.Println(where, n, token)
}
