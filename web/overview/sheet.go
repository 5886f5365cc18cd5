package overview

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

// sheet is a chart or a card as a table: on the page and, exactly, as CSV.
type sheet struct {
	Title   string
	Columns []string // the first names the rows, the others are figures
	Rows    [][]cell
}

// cell is a figure in two forms, for people and for programs.
type cell struct{ Text, Exact string }

func countCell(n int64) cell { return cell{components.Count(n), strconv.FormatInt(n, 10)} }

func moneyCell(micro int64) cell {
	return cell{components.Money(micro), strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64)}
}

func shareCell(part, whole int64) cell {
	if whole == 0 {
		return cell{Text: "–"}
	}
	return cell{components.Share(part, whole), strconv.FormatFloat(float64(part)/float64(whole), 'f', 6, 64)}
}

func millisCell(d time.Duration, measured int64) cell {
	if measured == 0 {
		return cell{Text: "–"}
	}
	return cell{components.Millis(d), strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)}
}

// nameCell is text from users or clients.
func nameCell(text string) cell { return cell{text, tenants.CSVCell(text)} }

// sheetOf returns a table by its name in addresses, or nil if unknown.
func (m *model) sheetOf(name string) *sheet {
	switch name {
	case tokensChart:
		return m.series("Tokens received and sent", []string{"Requests", "Failed", "Received", "Sent", "Not sent", "Paid (USD)", "Net saved (USD)", "Kept alive", "Received, kept alive", "Sent, kept alive"}, m.Points, func(p *tenants.Point) []cell {
			return []cell{
				countCell(p.Exchanges), countCell(p.Failures), countCell(p.TokensBefore), countCell(p.TokensAfter), countCell(p.Saved()),
				moneyCell(p.CostMicroUSD), moneyCell(p.NetMicroUSD), countCell(p.Reach), countCell(p.ReachBefore), countCell(p.ReachAfter),
			}
		})
	case cacheChart:
		points, _ := m.coarse()
		return m.series("Input read from the cache", []string{"Input tokens", "Read from cache", "Written to cache", "Share read"}, points, func(p *tenants.Point) []cell {
			return []cell{countCell(p.Prompt()), countCell(p.CacheRead), countCell(p.CacheWrite), shareCell(p.CacheRead, p.Prompt())}
		})
	case overheadChart:
		return m.series("Proxy overhead", []string{"Measured", "p50 (ms)", "p99 (ms)"}, m.Points, func(p *tenants.Point) []cell {
			return []cell{countCell(p.Overhead.Measured), millisCell(p.Overhead.P50, p.Overhead.Measured), millisCell(p.Overhead.P99, p.Overhead.Measured)}
		})
	case eventsChart:
		var titles []string
		for _, kind := range kinds() {
			titles = append(titles, kind.Title)
		}
		points, _ := m.coarse()
		return m.series("Compaction events", titles, points, func(p *tenants.Point) []cell {
			var row []cell
			for _, kind := range kinds() {
				row = append(row, countCell(kind.of(&p.Prompts)))
			}
			return row
		})
	case "money":
		return m.moneySheet()
	case "misses":
		return m.missesSheet()
	case "answers":
		return m.answersSheet()
	case "split":
		return m.splitSheet()
	}
	return nil
}

// series is a table with a row for each point.
func (m *model) series(title string, columns []string, points []tenants.Point, row func(point *tenants.Point) []cell) *sheet {
	s := &sheet{Title: title, Columns: append([]string{"From (" + m.zoneName() + ")"}, columns...)}
	for i := range points {
		at := points[i].From.In(m.Zone)
		s.Rows = append(s.Rows, append([]cell{{at.Format("2 Jan 2006, 15:04"), at.Format(time.RFC3339)}}, row(&points[i])...))
	}
	return s
}

func (m *model) moneySheet() *sheet {
	s := &sheet{Title: "Net saved", Columns: []string{"Part", "Amount (USD)"}}
	for _, source := range m.sources() {
		s.Rows = append(s.Rows, []cell{nameCell(source.Title), moneyCell(source.Amount)})
	}
	s.Rows = append(s.Rows, []cell{nameCell("Net saved"), moneyCell(m.Totals.NetMicroUSD)})
	return s
}

func (m *model) missesSheet() *sheet {
	s := &sheet{Title: "Cache misses", Columns: []string{"Cause", "Requests", "Tokens"}}
	for _, misses := range m.Misses {
		s.Rows = append(s.Rows, []cell{nameCell(missName(misses.Cause)), countCell(misses.Count), countCell(misses.Tokens)})
	}
	return s
}

func (m *model) splitSheet() *sheet {
	s := &sheet{Title: "By " + strings.ToLower(m.groupTitle()), Columns: []string{
		m.groupTitle(), "Requests", "Failed", "Received", "Sent", "Not sent", "L0", "L1", "L2", "L3", "Compactions", "Paid (USD)", "Net saved (USD)", "Kept alive", "Received, kept alive", "Sent, kept alive",
	}}
	for i := range m.Rows {
		row := &m.Rows[i]
		s.Rows = append(s.Rows, []cell{
			nameCell(m.rowTitle(row)), countCell(row.Exchanges), countCell(row.Failures), countCell(row.TokensBefore), countCell(row.TokensAfter),
			shareCell(row.Saved(), row.Sendable()), countCell(row.Prompts.Level0), countCell(row.Prompts.Level1), countCell(row.Prompts.Level2), countCell(row.Prompts.Level3),
			countCell(row.Epochs), moneyCell(row.CostMicroUSD), moneyCell(row.NetMicroUSD), countCell(row.Reach), countCell(row.ReachBefore), countCell(row.ReachAfter),
		})
	}
	return s
}

// used returns the rows with at least one figure, newest first.
func (s *sheet) used() [][]cell {
	var used [][]cell
	for _, row := range slices.Backward(s.Rows) {
		if slices.ContainsFunc(row[1:], func(c cell) bool { return c.Exact != "" && c.Exact != "0" && c.Exact != "0.000000" }) {
			used = append(used, row)
		}
	}
	return used
}

// write writes the table.
func (s *sheet) write(out *csv.Writer) error {
	if err := out.Write(s.Columns); err != nil {
		return err
	}
	for _, row := range s.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = cell.Exact
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Data answers with a table of the page as CSV, with the page's range and filters.
func (h *Handler) Data(c echo.Context, who tenants.Principal) error {
	ctx, workspace, part := c.Request().Context(), who.Workspace.ID, c.QueryParam("part")
	m := &model{query: newQuery(c.QueryParams(), layout.Zone(c.Request()), h.deps.Now()), Role: who.Role}
	see(m, who)
	m.Zone = time.UTC // files use UTC for every reader
	if m.isWrong() || m.sheetOf(part) == nil {
		return echo.NewHTTPError(http.StatusBadRequest)
	}
	var err error
	switch part {
	case "money":
		m.Totals, err = h.deps.Usage.Totals(ctx, workspace, m.Filter)
	case "misses":
		var balance tenants.Balance
		balance, err = h.deps.Usage.Balance(ctx, workspace, m.Filter)
		m.Misses = balance.Misses
	case "answers":
		_, m.Answers, err = h.deps.Usage.Answers(ctx, workspace, m.Filter)
	case "split":
		m.Rows, err = h.deps.Usage.Usage(ctx, workspace, m.By, m.Filter)
	default:
		m.Points, err = h.deps.Usage.Series(ctx, workspace, m.Filter, m.Span.step)
	}
	if err != nil {
		return err
	}
	return m.sheetOf(part).write(layout.CSV(c, "palimpsest-overview-"+part+".csv"))
}

// width returns the number of columns.
func (s *sheet) width() string { return strconv.Itoa(len(s.Columns)) }
