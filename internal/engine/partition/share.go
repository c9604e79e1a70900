package partition

import "slices"

// share is how many of the partitions the process with that rank among so many has.
func share(partitions, processes, rank int) int {
	n := partitions / processes
	if rank < partitions%processes {
		n++
	}
	return n
}

// role is what a process is for a partition.
type role uint8

const (
	none role = iota
	bidding
	working
	leaving
)

// decision is what a process changes, by numbers of partitions.
type decision struct{ start, stop []int }

// decide brings the partitions that a process has or bids for to the number that it is to have. taken are those whose
// lease is held. Processes begin to look at different places, from.
func decide(want, from int, mine []role, taken []bool) (d decision) {
	have := 0
	for n, r := range mine {
		if r == bidding && taken[n] { // another process was faster
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
