// Command httpapi charges cards by another company's HTTP interface.
//
// Its handler must not run inside a transaction, for a call may take seconds: bus.Handle leases the message instead,
// and extends the lease while the handler runs. DATABASE_URL names the database, PAYMENT_URL the other company.
package main
