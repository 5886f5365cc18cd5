package session

// Made counts the inserts and summaries of a workspace's prompts since a moment. Deleted sessions are not
// included.
type Made struct {
	// Inserts counts inserts by module.
	Inserts map[string]int64

	// Summaries were written by a model. Rejected ones were not used.
	Summaries, Rejected int64
}
