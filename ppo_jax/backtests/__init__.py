"""Backtests: agents on prices that neither training nor selection has seen."""
