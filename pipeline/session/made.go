package session

// Made is what modules have put into the prompts of a workspace, and had written, since
// a moment. What belonged to sessions that are deleted is not in it.
type Made struct {
	// Inserts counts, by the modules' names, what each has put into a prompt.
	Inserts map[string]int64

	// Summaries were written by a model; Rejected ones were not used.
	Summaries, Rejected int64
}
