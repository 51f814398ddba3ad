// Token mode with pgjdbc: the read is asked of the replica itself, in one round
// trip; the primary is not needed.
//
// usage: java -cp postgresql.jar TokenMode.java write PRIMARY ID     prints the token
//        java -cp postgresql.jar TokenMode.java read TOKEN ID PRIMARY REPLICA...
//
// PRIMARY and REPLICA are JDBC addresses. A read prints where it was served,
// whether the row was there, and the token to carry on with.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;
import org.postgresql.PGConnection;

class TokenMode {
    static final int WAIT_MS = 50;

    record Answer(int rows, String where, String token) {}

    static String write(String primary, int note) throws SQLException {
        try (Connection connection = DriverManager.getConnection(primary)) {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.execute("SET LOCAL replica_pin.report_commit_token = on");
                statement.execute("INSERT INTO note (id) VALUES (" + note + ")");
            }
            connection.commit();
            return connection.unwrap(PGConnection.class)
                .getParameterStatus("replica_pin.commit_token");
        }
    }

    // The read, in one statement string with the proof. pgjdbc sends its parts with
    // parameters, but with one Sync: one transaction, and when require() fails the
    // server skips the read. Needs autocommit, else pgjdbc puts a BEGIN in front,
    // and a COMMIT has to follow.
    static int readBehind(Connection replica, String token, int note) throws SQLException {
        String sql = "CALL replica_pin.require(?, ?); SELECT id FROM note WHERE id = ?";
        try (PreparedStatement statement = replica.prepareStatement(sql)) {
            statement.setString(1, token);
            statement.setInt(2, WAIT_MS);
            statement.setInt(3, note);
            statement.execute();
            statement.getMoreResults();
            return count(statement.getResultSet());
        }
    }

    static int readPlainly(Connection primary, int note) throws SQLException {
        try (PreparedStatement statement =
                primary.prepareStatement("SELECT id FROM note WHERE id = ?")) {
            statement.setInt(1, note);
            return count(statement.executeQuery());
        }
    }

    static int count(ResultSet rows) throws SQLException {
        int count = 0;
        while (rows.next()) {
            count++;
        }
        return count;
    }

    // What to carry instead of a token that a replica cannot compare. No replica can
    // ever have a write that a failover lost (required is NULL): begin anew.
    static String renew(String primary, String token) throws SQLException {
        String sql = "SELECT coalesce(required, replica_pin.current_token())"
            + " FROM replica_pin.route(token => ?)";
        try (Connection connection = DriverManager.getConnection(primary);
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, token);
            ResultSet row = statement.executeQuery();
            row.next();
            return row.getString(1);
        }
    }

    // RP001: the next replica, then the primary, and the token stays. RP002: the
    // primary renews it, once.
    static Answer read(List<Connection> replicas, String primary, String token, int note)
            throws SQLException {
        boolean renewed = false;
        for (int i = 0; i < replicas.size(); ) {
            try {
                return new Answer(readBehind(replicas.get(i), token, note), "r" + (i + 1), token);
            } catch (SQLException error) {
                String state = error.getSQLState();
                if (!List.of("RP001", "RP002").contains(state)) {
                    throw error;
                }
                if (state.equals("RP001") || renewed) {
                    i++;
                } else {
                    token = renew(primary, token);
                    renewed = true;
                }
            }
        }
        try (Connection connection = DriverManager.getConnection(primary)) {
            return new Answer(readPlainly(connection, note), "primary", token);
        }
    }

    public static void main(String[] arguments) throws SQLException {
        if (arguments[0].equals("write")) {
            System.out.println(write(arguments[1], Integer.parseInt(arguments[2])));
            return;
        }
        List<Connection> replicas = new java.util.ArrayList<>();
        for (String address : Arrays.asList(arguments).subList(4, arguments.length)) {
            replicas.add(DriverManager.getConnection(address));
        }
        Answer answer = read(replicas, arguments[3], arguments[1], Integer.parseInt(arguments[2]));
        System.out.println(answer.where + " " + answer.rows + " " + answer.token);
        for (Connection replica : replicas) {
            replica.close();
        }
    }
}
