package memorybench

import ("testing";"fmt";"os";"palimpsest/pipeline/archive/search";"slices";"strings";"palimpsest/pipeline/conversation";"palimpsest/pipeline/tokens")

func TestScratch(t *testing.T) {
	set, err := Load("../../../shared/data/recall")
	if err != nil { t.Fatal(err) }
	counter, _ := tokens.NewCounter()
	idx := map[string]*search.Memory{}
	for id, ms := range set.Sessions { idx[id] = search.NewMemory(search.Documents(0, ms)) }
	verbose := os.Getenv("V")
	for name, asks := range map[string][]Ask{"tools": set.Tools, "rereads": set.Rereads, "refs": set.Refs} {
		at := [6]int{}; in := 0
		for _, a := range asks {
			found := idx[a.Session].Search(search.Ask(a.Text()), a.At, 50)
			var seen [][2]int
			pos := 99
			for _, m := range found {
				r := [2]int{m.Document.From, m.Document.To}
				if slices.Contains(seen, r) { continue }
				seen = append(seen, r)
				hit := false
				if name == "refs" {
					for _, e := range a.Evidence { if e >= r[0] && e < r[1] { hit = true } }
				} else { hit = r[0] <= a.Evidence[0] && a.Evidence[1] < r[1] }
				if hit && pos==99 { pos = len(seen)-1 }
				if len(seen) >= 20 { break }
			}
			if name == "tools" {
				var hits [][]conversation.Message
				for i := range min(5,len(seen)) { hits = append(hits, set.Sessions[a.Session][seen[i][0]:seen[i][1]]) }
				texts := search.Excerpts(hits, a.Text(), 4000, counter.Count)
				all := strings.Join(texts, "\n")
				if n := counter.Count(all); n > 4000 { t.Error("budget", n) }
				if strings.Contains(all, a.Answer) { in++ } else if verbose == "x" { fmt.Println("NOANS", a.Session, a.Evidence, a.Question, a.Answer, counter.Count(texts[0])) }
			}
			for k := range at { if pos <= k { at[k]++ } }
			if verbose == name && pos > 4 {
				fmt.Println("MISS", a.Session, a.At, a.Evidence, pos, a.Text())
				for i, m := range found { if i>5 {break}; fmt.Printf("    %d-%d.%d %s %.2f %.2f %v\n", m.Document.From,m.Document.To,m.Document.Part,m.Document.Tool,m.Rank,m.Score, m.Document.Paths) }
			}
		}
		fmt.Printf("%s n=%d", name, len(asks))
		for k := range at { fmt.Printf(" @%d %.1f%%", k+1, 100*float64(at[k])/float64(len(asks))) }
		fmt.Println(" answer in", in)
	}
}
