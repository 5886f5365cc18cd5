package session

// Stretches returns from and to of the messages that are read for a page of rows, each from one message to another.
func Stretches(gap int, rows ...[2]int) [][2]int {
	page := make([]span, len(rows))
	for i, row := range rows {
		page[i] = span{From: row[0], To: row[1]}
	}
	return stretches(page, gap, func(span) bool { return true })
}
