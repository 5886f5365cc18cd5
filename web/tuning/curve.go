package tuning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// curvePart is the value of part that requests the page with the curve.
const curvePart = "curve"

// curveContexts are the curve's values of ipc.minContext, cheapest first.
var curveContexts = []int{25_000, 50_000, 100_000, 200_000}

// curvePoint is the sessions' outcome at one value of ipc.minContext.
type curvePoint struct {
	MinContext int
	preview.Figures

	TakenUp, Held int // identifiers that turns take up again, and the number of them still in prompts; 0 if not counted
}

// curve replays the sessions with "Spend less" at each value of minContext, with the other typed settings.
func (p *Previewer) curve(ctx context.Context, who tenants.Principal, picked session.Selection, saved, wanted pipeline.Config) ([]curvePoint, error) {
	if !wanted.Runs(ipc.Name) {
		return nil, nil
	}
	pipeline.Change[ipc.Config](&wanted).Trigger = ipc.TriggerBreakEven
	points, configs := make([]curvePoint, len(curveContexts)), make([]pipeline.Config, len(curveContexts))
	for i, minContext := range curveContexts {
		pipeline.Change[ipc.Config](&wanted).MinContext = minContext
		found, err := p.deps.Compares.Compare(ctx, who.Workspace.ID, picked, saved, wanted)
		if err != nil {
			return nil, fmt.Errorf("minContext %d: %w", minContext, err)
		}
		points[i], configs[i] = curvePoint{MinContext: minContext, Figures: found.Wanted}, wanted
	}
	counted, err := p.identifiers(ctx, who, picked, saved, configs...)
	if err != nil || counted.MayNot {
		return points, err
	}
	for i, held := range counted.Held {
		points[i].TakenUp, points[i].Held = counted.TakenUp, held
	}
	return points, nil
}

// label is the point's value of minContext.
func (c curvePoint) label() string { return components.Short(int64(c.MinContext)) }

// cost is the cost of prompts as a share of their cost untouched; 1 if that is 0.
func (c curvePoint) cost() float64 {
	if untouched := c.Cost + c.Net; untouched > 0 {
		return float64(c.Cost) / float64(untouched)
	}
	return 1
}

// fidelity is the share of the identifiers that prompts still have where they are needed again. If
// identifiers were not counted, it is the share of the prompts that the model would have read word for word.
func (c curvePoint) fidelity() float64 {
	switch {
	case c.TakenUp > 0:
		return float64(c.Held) / float64(c.TakenUp)
	case c.Received > 0:
		return float64(c.Verbatim) / float64(c.Received)
	default:
		return 1
	}
}

// saving describes how much cheaper or more expensive the prompts would have been.
func (c curvePoint) saving() string {
	percent := 100 * (c.cost() - 1)
	if percent <= 0 {
		return fmt.Sprintf("−%.1f %%", -percent)
	}
	return fmt.Sprintf("+%.1f %%", percent)
}

// kept describes the point's fidelity.
func (c curvePoint) kept() string { return fmt.Sprintf("%.1f %%", 100*c.fidelity()) }

// verbatim describes the share that the model would have read word for word.
func (c curvePoint) verbatim() string {
	return curvePoint{Figures: c.Figures}.kept()
}

// identifiers returns the number that prompts still have; "–" if they were not counted.
func (c curvePoint) identifiers() string {
	if c.TakenUp == 0 {
		return "–"
	}
	return c.kept()
}

// upward names the vertical axis.
func upward(points []curvePoint) string {
	if points[0].TakenUp == 0 {
		return "share of prompts read word for word"
	}
	return "share of identifiers still in the prompt when a turn uses them again"
}

// The picture of the curve, in its own units: cost to the right, fidelity up. Each axis spans only the
// points, since they are often close together.
const (
	curveWidth, curveHeight = 480, 200
	curveLeft, curveBottom  = 48, 36
	curveMargin             = 28
	labelAbove, labelBelow  = -9, 17 // labels alternate, so that close points have room for both
)

// mark is a point in the picture.
type mark struct {
	X, Y  string
	Label string
	Shift string // of the label, downward
}

// curveMarks places the points.
func curveMarks(points []curvePoint) []mark {
	left, width := curveLeft+curveMargin, curveWidth-curveLeft-2*curveMargin
	height := curveHeight - curveBottom - 2*curveMargin
	cheapest, dearest := curveEnds(points, curvePoint.cost)
	least, most := curveEnds(points, curvePoint.fidelity)
	marks := make([]mark, len(points))
	for i, point := range points {
		shift := labelAbove
		if i%2 == 1 {
			shift = labelBelow
		}
		marks[i] = mark{
			X:     place(float64(left) + float64(width)*between(point.cost(), cheapest.cost(), dearest.cost())),
			Y:     place(curveMargin + float64(height)*(1-between(point.fidelity(), least.fidelity(), most.fidelity()))),
			Label: point.label(), Shift: strconv.Itoa(shift),
		}
	}
	return marks
}

// curveEnds returns the points with the least and the most of a value.
func curveEnds(points []curvePoint, of func(curvePoint) float64) (least, most curvePoint) {
	compare := func(a, b curvePoint) int { return cmp.Compare(of(a), of(b)) }
	return slices.MinFunc(points, compare), slices.MaxFunc(points, compare)
}

// between returns a value's position from least to most, from 0 to 1; 0.5 if both are the same.
func between(value, least, most float64) float64 {
	if most <= least {
		return 0.5
	}
	return (value - least) / (most - least)
}

func place(at float64) string { return strconv.FormatFloat(at, 'f', 1, 64) }

// curveLine connects the marks.
func curveLine(marks []mark) string {
	places := make([]string, len(marks))
	for i, mark := range marks {
		places[i] = mark.X + "," + mark.Y
	}
	return strings.Join(places, " ")
}
