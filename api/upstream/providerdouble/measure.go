package providerdouble

// Measure returns the size of a body's prompt in the tokens that would be
// reported for it, or why the body is refused.
func (d *Double) Measure(format string, body []byte) (int, error) {
	request, rejection := d.judge(format, nil, body)
	if rejection != nil {
		return 0, rejection
	}
	return request.about().Tokens, nil
}
