package render

import (
	"bytes"
	"slices"
)

// merge carries an edit of a document over to the text that a person wrote. The library that writes YAML
// drops blank lines and blanks that have no meaning; so what is compared is the document written by it
// before the edit (base) and after (edited), and the lines that differ are exchanged in the text. It is
// not ok where those lines are written in another way in the text.
func merge(text, base, edited [][]byte) (merged [][]byte, ok bool) {
	where := align(base, text)
	place := 0 // in the text: what is before it has been written
	for _, h := range hunks(base, edited) {
		begin, end := place, place
		if h.from < h.to {
			begin, end = where[h.from], where[h.to-1]+1
			for i := h.from; i < h.to; i++ {
				if where[i] < 0 || i > h.from && where[i] < where[i-1] {
					return nil, false
				}
			}
		} else if h.from > 0 {
			if where[h.from-1] < 0 {
				return nil, false
			}
			begin = where[h.from-1] + 1
			end = begin
		}
		if begin < place {
			return nil, false
		}
		merged = append(merged, text[place:begin]...)
		merged = append(merged, edited[h.first:h.last]...)
		place = end
	}
	return append(merged, text[place:]...), true
}

// hunk says that lines from to to of one text are lines first to last of the other.
type hunk struct{ from, to, first, last int }

// hunks are the differences of two texts.
func hunks(a, b [][]byte) (all []hunk) {
	match := align(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && match[i] == j {
			i, j = i+1, j+1
			continue
		}
		h := hunk{from: i, first: j}
		for i < len(a) && match[i] < 0 {
			i++
		}
		j = len(b)
		if i < len(a) {
			j = match[i]
		}
		h.to, h.last = i, j
		all = append(all, h)
	}
	return all
}

// mostCells bounds the memory of a comparison. A text that is longer is written anew, without its blank lines.
const mostCells = 4 << 20

// align finds, for each line of a, its line in b, or -1: a longest common subsequence, without regard to
// blanks at the ends of lines. Lines that are alike at both ends need no search.
func align(a, b [][]byte) []int {
	match := slices.Repeat([]int{-1}, len(a))
	same := func(i, j int) bool {
		return bytes.Equal(bytes.TrimRight(a[i], " \t\r\n"), bytes.TrimRight(b[j], " \t\r\n"))
	}
	first, lastA, lastB := 0, len(a), len(b)
	for first < lastA && first < lastB && same(first, first) {
		match[first] = first
		first++
	}
	for lastA > first && lastB > first && same(lastA-1, lastB-1) {
		lastA, lastB = lastA-1, lastB-1
		match[lastA] = lastB
	}
	rows, columns := lastA-first, lastB-first
	if rows == 0 || columns == 0 || rows*columns > mostCells {
		return match
	}
	length := make([]int32, (rows+1)*(columns+1))
	cell := func(i, j int) *int32 { return &length[i*(columns+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			if same(first+i, first+j) {
				*cell(i, j) = *cell(i+1, j+1) + 1
			} else {
				*cell(i, j) = max(*cell(i+1, j), *cell(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case same(first+i, first+j):
			match[first+i] = first + j
			i, j = i+1, j+1
		case *cell(i+1, j) >= *cell(i, j+1):
			i++
		default:
			j++
		}
	}
	return match
}
