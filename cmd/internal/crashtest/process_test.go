package crashtest

const processEnv = "ONCEPAY_CRASHTEST_PROCESS"

func workerProcess() int { return 0 }
