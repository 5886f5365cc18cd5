package tenants

// Mail is a message to one person. It holds no text of sessions.
type Mail struct {
	To      string // one address
	Subject string // one line
	Text    string // plain text, with links written out
}
