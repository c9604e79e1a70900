package partition

import "slices"

// share returns how many of the partitions belong to the process with the given rank.
func share(partitions, processes, rank int) int {
	n := partitions / processes
	if rank < partitions%processes {
		n++
	}
	return n
}

// role is the role of a process for a partition.
type role uint8

const (
	none role = iota
	bidding
	working
	leaving
)

// decision lists the partitions that a process starts and stops, by number.
type decision struct{ start, stop []int }

// decide compares the partitions that a process has or bids for with its share. taken are the partitions whose lease
// is held. Each process begins its search at a different place, from.
func decide(want, from int, mine []role, taken []bool) (d decision) {
	have := 0
	for n, r := range mine {
		if r == bidding && taken[n] { // a different process was faster
			d.stop = append(d.stop, n)
		} else if r == bidding || r == working {
			have++
		}
	}
	for _, giving := range []role{bidding, working} {
		for n := len(mine) - 1; n >= 0 && have > want; n-- {
			if mine[n] == giving && !slices.Contains(d.stop, n) {
				d.stop = append(d.stop, n)
				have--
			}
		}
	}
	for i := 0; i < len(mine) && have < want; i++ {
		if n := (from + i) % len(mine); mine[n] == none && !taken[n] {
			d.start = append(d.start, n)
			have++
		}
	}
	return d
}
