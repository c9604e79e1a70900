package pg

import "database/sql"

// TxOptions are what a caller of Bus.InTx may choose.
type TxOptions struct {
	Isolation sql.IsolationLevel
	Attempts  int
}

// TxOption changes TxOptions. It stands here because package bus makes these options and package scheduler, which must not import
// bus, asks a bus for one.
type TxOption func(o *TxOptions)

// Isolation sets the level.
func Isolation(level sql.IsolationLevel) TxOption {
	return func(o *TxOptions) { o.Isolation = level }
}
