package compactionbench

import "bytes"

// held counts the names from earlier messages that the turn after a request uses and its prompt has.
func (r *reading) held(request int, has func(name string) bool) Share {
	if request+1 >= len(r.ends) {
		return Share{}
	}
	held, of := r.names.Held(r.ends[request], r.ends[request+1], has)
	return Share{Kept: held, Of: of}
}

func formsHold(forms []*form, name string) bool {
	for _, form := range forms {
		if bytes.Contains(form.text, []byte(name)) {
			return true
		}
	}
	return false
}
