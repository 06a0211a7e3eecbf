package audit

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
)

// WriteJSONLines writes records as the files have them: an object a line.
func WriteJSONLines(w io.Writer, records iter.Seq2[Record, error]) error {
	return writeObjects(w, records, "", "", "\n", "")
}

// writeArray writes records as one JSON array.
func writeArray(w io.Writer, records iter.Seq2[Record, error]) error {
	return writeObjects(w, records, "[", ",\n", "", "]\n")
}

// writeObjects writes records with text before all, between two, after each and after all.
func writeObjects(w io.Writer, records iter.Seq2[Record, error], before, between, after, end string) error {
	out := bufio.NewWriter(w)
	out.WriteString(before)
	var object []byte
	separator := ""
	for r, err := range records {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		object = append(r.appendJSON(append(object[:0], separator...)), after...)
		if _, err := out.Write(object); err != nil { // so that the search ends
			return err
		}
		separator = between
	}
	out.WriteString(end)
	return out.Flush() // with the first error of all writes
}

var csvHeader = []string{
	"at", "vhost", "queue", "message_id", "deadline", "lateness_ms", "path", "outcome", "exchange", "routing_key", "to", "lost",
	"reason", "operation", "user", "face", "result", "detail",
}

// WriteCSV writes records as RFC 4180 has it, with a header. Names that a spreadsheet
// would take for a formula begin with an apostrophe.
func WriteCSV(w io.Writer, records iter.Seq2[Record, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeader); err != nil {
		return err
	}
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := out.Write(r.row()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (r *Record) row() []string {
	row := make([]string, len(csvHeader))
	row[0] = string(instant(r.At).append(nil))
	if r.Lost > 0 {
		row[11] = strconv.FormatInt(r.Lost, 10)
		return row
	}
	row[1], row[2], row[12] = harmless(r.VHost), harmless(r.Queue), r.Died()
	if c := r.Change; c != nil {
		copy(row[13:], []string{harmless(c.Operation), harmless(c.User), c.Face, c.Result, harmless(c.Detail)})
		return row
	}
	copy(row[3:], []string{
		harmless(string(r.MessageID)), "", "", r.Path, r.Outcome,
		harmless(r.Exchange), harmless(string(r.RoutingKey)), harmless(strings.Join(r.To, " ")),
	})
	if r.Died() == Expired {
		row[4], row[5] = string(instant(r.Deadline).append(nil)), strconv.FormatInt(r.LateMillis, 10)
	}
	return row
}

func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
