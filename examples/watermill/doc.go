// Command watermill shows Edda and Watermill working together, and counts.
//
// It promises an exit code: 0 when every count is exact, 1 when one is not, 2 for wrong flags. First a tour within
// one process: a Router and the CQRS component on Edda's queues. Then an exchange between processes that are
// killed while they hold an open transaction: a stock watermill-sql publisher feeds a saga, a stock Router answers what
// the saga publishes, and a stock watermill-sql subscriber takes the answers. Each number that is published must be
// counted once by the saga and received once.
//
// Reading order: tour.go, roles.go (the four programs of the exchange), exchange.go (what is counted), hands.go (who
// is killed, and when), main.go.
package main
