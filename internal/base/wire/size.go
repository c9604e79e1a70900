package wire

// Limits of a queue's table, by its constraints, in bytes. They are far above those of a send. A message beyond them is
// no dead letter either, because it could not be retried.
const (
	MostHeader = 2 << 20
	MostBody   = 16 << 20
)
