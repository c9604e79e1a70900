package pg_test

import (
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The lock of a process whose machine vanished must not stay until the defaults of TCP detect that, after two hours.
func TestServerNoticesAVanishedClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, want string }{
		"by default":            {"", "5 2 3 10000"},
		"what the user has set": {"60", "60 2 3 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(pgdev.DSN(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.given != "" {
				config.ConnConfig.RuntimeParams["tcp_keepalives_idle"] = c.given
			}
			conn, err := pg.Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pg.HangUp(t.Context(), conn)
			var got string
			if err := conn.QueryRow(t.Context(), "SELECT concat_ws(' ', (current_setting('tcp_keepalives_idle')), "+
				"current_setting('tcp_keepalives_interval'), "+
				"current_setting('tcp_keepalives_count'), (SELECT setting FROM pg_settings WHERE name = "+
				"'tcp_user_timeout'))").Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("the settings are %q, want %q", got, c.want)
			}
		})
	}
}
