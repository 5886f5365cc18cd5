package providerdouble

// Measure returns the size of a body's prompt in reported tokens, or the refusal of the body.
func (d *Double) Measure(format string, body []byte) (int, error) {
	request, rejection := d.judge(format, nil, body)
	if rejection != nil {
		return 0, rejection
	}
	return request.about().Tokens, nil
}
