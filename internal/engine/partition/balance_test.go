package partition

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Messages wait in the partitions that this function chose: its results must never change.
func TestPartitionOfNeverChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key  string
		want [4]int
	}{
		{"", [4]int{1, 7, 11, 239}},
		{"a", [4]int{1, 4, 6, 130}},
		{"b", [4]int{0, 3, 5, 110}},
		{"7", [4]int{1, 6, 9, 207}},
		{"order-1", [4]int{0, 2, 3, 73}},
		{"order-2", [4]int{1, 5, 8, 170}},
		{"Ærøskøbing", [4]int{0, 0, 0, 11}},
		{"00000000-0000-0000-0000-000000000001", [4]int{1, 5, 7, 167}},
	} {
		got := [4]int{Of(c.key, 2), Of(c.key, 8), Of(c.key, 12), Of(c.key, 256)}
		if got != c.want || Of(c.key, 1) != 0 {
			t.Errorf("%q: %v, want %v", c.key, got, c.want)
		}
	}
}

// Keys that resemble each other spread evenly.
func TestPartitionsAreEven(t *testing.T) {
	t.Parallel()
	const keys = 100_000
	for name, key := range map[string]func(int) string{
		"numbers": func(n int) string { return fmt.Sprint(n) },
		"padded":  func(n int) string { return fmt.Sprintf("order-%012d", n) },
		"uuids":   func(n int) string { return fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", n) },
		"long":    func(n int) string { return strings.Repeat("x", 400) + fmt.Sprint(n) },
	} {
		for _, partitions := range []int{2, 3, 7, 8, 12, 64} {
			got := make([]int, partitions)
			for n := range keys {
				got[Of(key(n), partitions)]++
			}
			for p, n := range got {
				if want := keys / partitions; n < want*85/100 || n > want*115/100 {
					t.Errorf("%s: partition %d of %d has %d keys, want %d ± 15 %%", name, p, partitions, n, want)
				}
			}
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	for partitions := 1; partitions <= 40; partitions++ {
		for servers := 1; servers <= 50; servers++ {
			sum, least, most := 0, partitions, 0
			for rank := range servers {
				n := share(partitions, servers, rank)
				sum, least, most = sum+n, min(least, n), max(most, n)
			}
			if sum != partitions || most-least > 1 {
				t.Errorf("%d partitions of %d servers: %d shared, %d to %d each", partitions, servers, sum, least, most)
			}
		}
	}
}

// cluster simulates servers that check in any order; leases are granted at once.
type cluster struct {
	held  []int // the seat of the server, -1: free
	roles map[int][]role
}

func (c *cluster) look(seats []int, rank int) {
	seat := seats[rank]
	taken := make([]bool, len(c.held))
	for n, by := range c.held {
		taken[n] = by >= 0
	}
	mine := c.roles[seat]
	d := decide(share(len(c.held), len(seats), rank), rank*len(c.held)/len(seats), mine, taken)
	for _, n := range d.stop {
		if mine[n] = none; c.held[n] == seat {
			c.held[n] = -1
		}
	}
	for _, n := range d.start {
		if mine[n] = bidding; c.held[n] < 0 {
			mine[n], c.held[n] = working, seat
		}
	}
}

func (c *cluster) even(seats []int) bool {
	have := map[int]int{}
	for _, by := range c.held {
		have[by]++
	}
	for rank, seat := range seats {
		if have[seat] != share(len(c.held), len(seats), rank) {
			return false
		}
	}
	return true
}

// Servers start and die at random; after each change, a few checks of every server make the shares even.
func TestServersComeToEvenShares(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := &cluster{held: make([]int, 1+random.IntN(24)), roles: map[int][]role{}}
		for n := range c.held {
			c.held[n] = -1
		}
		for change := range 12 {
			var seats []int
			for seat := range 6 {
				if random.IntN(2) == 0 {
					seats = append(seats, seat)
				}
			}
			if len(seats) == 0 {
				continue
			}
			c.change(seats)
			for range 3 {
				for _, rank := range random.Perm(len(seats)) {
					c.look(seats, rank)
				}
			}
			if !c.even(seats) {
				t.Fatalf("seed %d, change %d: servers %v have %v", seed, change, seats, c.held)
			}
		}
	}
}

// change replaces the servers by seats: partitions of other servers become free.
func (c *cluster) change(seats []int) {
	alive := map[int][]role{}
	for _, seat := range seats {
		alive[seat] = c.roles[seat]
		if alive[seat] == nil {
			alive[seat] = make([]role, len(c.held))
		}
	}
	for n, by := range c.held {
		if alive[by] == nil {
			c.held[n] = -1
		}
	}
	c.roles = alive
}
