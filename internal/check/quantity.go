package check

import (
	"math/big"
	"strconv"
	"strings"
)

// quantity is an amount as Kubernetes writes it.
type quantity struct {
	value *big.Rat // nil when the text is none
	text  string
}

// parseQuantity reads 2, 2k, 2000m, 2Ki or 2e3.
func parseQuantity(text string) quantity {
	q := quantity{text: text}
	end := strings.IndexFunc(text, func(c rune) bool { return !strings.ContainsRune("+-.0123456789", c) })
	if end < 0 {
		end = len(text)
	}
	number, suffix := text[:end], text[end:]
	value, ok := new(big.Rat).SetString(number)
	factor := scale(suffix)
	if !ok || factor == nil || strings.ContainsAny(number, "/") || len(number) > 40 {
		return q
	}
	q.value = value.Mul(value, factor)
	return q
}

// scale is what a suffix multiplies with, nil when there is no such suffix.
func scale(suffix string) *big.Rat {
	power := func(base, exponent int64) *big.Rat {
		r := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(max(exponent, -exponent)), nil))
		if exponent < 0 {
			return r.Inv(r)
		}
		return r
	}
	if suffix == "" {
		return power(10, 0)
	}
	if i := strings.Index("numkMGTPE", suffix); i >= 0 && len(suffix) == 1 {
		return power(10, []int64{-9, -6, -3, 3, 6, 9, 12, 15, 18}[i])
	}
	if i := strings.Index("KMGTPE", suffix[:1]); i >= 0 && suffix[1:] == "i" {
		return power(1024, int64(i+1))
	}
	if suffix[0] == 'e' || suffix[0] == 'E' {
		if e, err := strconv.ParseInt(suffix[1:], 10, 8); err == nil && e >= -30 && e <= 30 {
			return power(10, e)
		}
	}
	return nil
}

// whole is the amount as a number of devices, and false when it is not a whole number.
func (q quantity) whole() (int64, bool) {
	if q.value == nil || !q.value.IsInt() || !q.value.Num().IsInt64() {
		return 0, false
	}
	return q.value.Num().Int64(), true
}

// same says whether two texts are one amount.
func (q quantity) same(other quantity) bool {
	if q.value == nil || other.value == nil {
		return q.text == other.text
	}
	return q.value.Cmp(other.value) == 0
}
