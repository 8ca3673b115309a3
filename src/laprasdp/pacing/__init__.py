"""How much of the budget a query may use now; decides, never acts."""
