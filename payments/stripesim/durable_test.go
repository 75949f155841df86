package stripesim

func helperProcess(string) int { return 1 }
