package main

import "fmt"

// The reference machine has 2 processors and Postgres on the same box. A peer slower than this there
// is badly written or badly run, and beating it proves nothing.
var reference = map[string]float64{
	"ceiling":      45_000,
	"single":       3_500,
	"watermillsql": 2_800,
	"river":        1_200,
}

// weakPeers fails when a peer's step is slower than the reference machine must have it.
func weakPeers(summaries []Summary) error {
	for _, s := range summaries {
		if least := reference[s.Peer]; s.Workload == Step && s.Rate < least {
			return fmt.Errorf("weak peer: %s does %.0f messages a second on %s, the reference machine does at "+
				"least %.0f"+
				" (-reference=false on another machine)", s.Peer, s.Rate, s.Name, least)
		}
	}
	return nil
}
