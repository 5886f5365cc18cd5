package components

// LevelWords describes in a sentence how much of a turn is sent at a level.
func LevelWords(level int) string {
	return [4]string{
		"Everything, as the client sent it.",
		"Tool results cut to their first 200 characters.",
		"Only the first sentences of the turn.",
		"One line for a block of turns.",
	}[level]
}
