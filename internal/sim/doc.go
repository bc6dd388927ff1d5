// Package sim simulates a whole cluster out of the code that ships.
package sim
